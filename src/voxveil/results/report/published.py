"""Published values of other systems for comparison on the page; other corpora and attackers."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DP_EXTRACTORS", "ESTIMATORS", "IDENTIFICATION", "U_ASR", "VPC2024", "PublishedSystem"]

#: Metric of each estimator -> its attribute of a published system, and its title.
ESTIMATORS = {
    "eps_max_pav": ("pav", "PAV"),
    "eps_max_gauss": ("gauss", "Gaussians"),
    "eps_max_t": ("t", "t"),
    "eps_max_rank": ("rank", "rank"),
}


@dataclass(frozen=True)
class PublishedSystem:
    """A system of the VoicePrivacy 2024 Challenge, semi-informed attack on LibriSpeech.

    Attributes:
        name: Its name in the challenge.
        eer: EER in percent.
        pav: Worst-case epsilon_max by PAV in nat.
        gauss: By two Gaussians.
        t: By two t distributions.
        rank: By similarity rank.
    """

    name: str
    eer: float
    pav: float
    gauss: float
    t: float
    rank: float

    def value(self, metric: str) -> float:
        """Return the EER in percent, or the worst case in nat of one of :data:`ESTIMATORS`."""
        return float(getattr(self, "eer" if metric == "eer" else ESTIMATORS[metric][0]))


VPC2024 = (
    PublishedSystem("B3", 27.78, 5.11, 7.97, 2.89, 5.49),
    PublishedSystem("B4", 29.77, 4.13, 9.85, 4.48, 4.65),
    PublishedSystem("B5", 32.18, 3.82, 4.21, 3.04, 4.45),
    PublishedSystem("T10-2", 40.32, 1.56, 1.58, 1.44, 2.01),
    PublishedSystem("T8-5", 41.41, 2.52, 0.85, 0.85, 8.95),
    PublishedSystem("T25-1", 42.22, 1.73, 9.86, 1.36, 2.93),
    PublishedSystem("T12-5", 42.71, 3.03, 0.91, 0.91, 1.76),
)

#: Identification rate in percent among N = 40 references, pooled rank attack, semi-informed.
IDENTIFICATION = {"T10-2": 69.37, "T8-5": 4.62}

#: U_ASR in % on LibriSpeech by family of systems and epsilon per vector, empty without noise.
U_ASR = {
    ("Anon", ""): 94.69,
    ("Anon+DP_BN", "100"): 93.96,
    ("Anon+DP_BN", "10"): 93.49,
    ("Anon+DP_BN", "1"): 93.03,
}

#: Published for the two DP extractors on LibriSpeech, in words: what, and the values.
DP_EXTRACTORS = (
    (
        "P_ASI, error rate of a speaker classifier on the features",
        "content at ε = 1: above 86 % (3.2 % without noise), at ε = 10: 80 %, at ε = 100: 60 %;"
        " pitch at ε = 1: above 94 % (62 % without noise)",
    ),
    (
        "U_ASR, 100 - WER of a recognizer trained on the anonymized speech",
        f"Anon {U_ASR['Anon', '']}; DP content "
        + ", ".join(str(U_ASR["Anon+DP_BN", epsilon]) for epsilon in ("100", "10", "1"))
        + " at ε = 100, 10, 1 per vector",
    ),
)
