import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxveil.features.speaker.pool import (
    FALLBACK_MEAN,
    FALLBACK_SD,
    MINIMUM_VOICED,
    Pool,
    PoolEntry,
    build_pool,
    cluster_voices,
    nearest_voice_accuracy,
    pitch_statistics,
    speaker_means,
)
from voxveil.features.speaker.targets import dense_clusters, select_target
from voxveil.runtime.errors import InputError, ParamsError

pytest.importorskip("sklearn")


def unit(vector: np.ndarray) -> np.ndarray:
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def made_entries(groups: tuple[int, ...] = (5, 4, 1), utterances: int = 3) -> list[PoolEntry]:
    """Speakers in tight groups around far-apart directions."""
    draw = np.random.default_rng(0)
    entries = []
    for group, size in enumerate(groups):
        for number in range(size):
            own = np.eye(8)[group] + draw.normal(0, 0.05, 8)
            for index in range(utterances):
                speaker = f"{group}{number}"
                f0 = np.full(40, 100.0 + 20 * group + number + index, np.float32)
                f0[:10] = 0
                embedding = unit(own + draw.normal(0, 0.02, 8))
                entries.append(PoolEntry(f"{speaker}-{index}", speaker, "FM"[group % 2], embedding, f0))
    return entries


def grouped_pool() -> Pool:
    """The pool with the groups themselves as clusters."""
    pool = build_pool(made_entries())
    return replace(pool, clusters=np.array([int(speaker[0]) for speaker in pool.speakers]))


@pytest.fixture(scope="module")
def pool() -> Pool:
    return grouped_pool()


def test_clusters_found_are_the_groups() -> None:
    found = build_pool(made_entries((5, 4, 4)))
    groups = [int(speaker[0]) for speaker in found.speakers]
    assert found.clusters.tolist() == groups, "numbered in order of appearance"
    assert found.embeddings.shape == (39, 8)


def test_clusters_depend_on_the_voices_only() -> None:
    voices = speaker_means(*rows(made_entries()))[1]
    assert np.array_equal(cluster_voices(voices), cluster_voices(voices.copy()))
    assert len(cluster_voices(np.tile(voices[:1], (4, 1)))) == 4, "equal voices are no fault"
    assert cluster_voices(voices[:2]).tolist() == [0, 0]


def rows(entries: list[PoolEntry]) -> tuple[np.ndarray, list[str]]:
    return np.stack([e.embedding for e in entries]), [e.speaker for e in entries]


def test_f0_statistics_are_those_of_voiced_frames(pool: Pool) -> None:
    assert pool.log_f0_mean[0] == pytest.approx(np.log(100.0))
    assert pool.log_f0_sd[0] == pytest.approx(0.0, abs=1e-6)
    assert pool.unvoiced.tolist() == []


def track(*hertz: float) -> np.ndarray:
    return np.array(hertz, np.float32)


def test_a_speaker_without_voice_takes_the_fallback_and_is_listed() -> None:
    voiced = track(*[0.0, *[110.0, 130.0] * 10])
    tracks = [np.zeros(50, np.float32), voiced, track(200.0), np.zeros(0, np.float32)]
    result = pitch_statistics(tracks, ["noise", "talker", "talker", "noise"])
    assert result.unvoiced == ["noise"]
    assert result.mean[0] == result.mean[3] == FALLBACK_MEAN
    assert result.sd[0] == FALLBACK_SD
    own = np.log([*[110.0, 130.0] * 10])
    assert result.mean[1] == pytest.approx(own.mean(), rel=1e-6)
    pooled = np.log([*[110.0, 130.0] * 10, 200.0])
    assert result.mean[2] == pytest.approx(pooled.mean(), rel=1e-6), "too short a track takes its speaker's"
    assert result.sd[2] == pytest.approx(pooled.std(), rel=1e-6)


@given(st.lists(st.lists(st.sampled_from([0.0, 60.0, 155.0, 400.0]), max_size=30), min_size=1, max_size=6))
def test_f0_statistics_are_always_finite(tracks: list[list[float]]) -> None:
    result = pitch_statistics(
        [track(*values) for values in tracks], ["a", "b"] * 3 if len(tracks) == 6 else ["a"] * len(tracks)
    )
    assert np.isfinite(result.mean).all()
    assert np.isfinite(result.sd).all()
    assert (result.sd >= 0).all()
    assert MINIMUM_VOICED > 1, "one frame has no deviation"


def test_a_saved_pool_is_the_same_and_its_bytes_too(pool: Pool, tmp_path: Path) -> None:
    pool.save(tmp_path / "a.npz")
    loaded = Pool.load(tmp_path / "a.npz")
    for name, array in vars(pool).items():
        assert np.array_equal(getattr(loaded, name), array)
    loaded.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_a_broken_pool_is_refused(pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "pool.npz"
    with pytest.raises(InputError, match="no such file"):
        Pool.load(path)
    path.write_bytes(b"not a zip")
    with pytest.raises(InputError, match=r"not a readable \.npz"):
        Pool.load(path)
    arrays = dict(vars(pool))
    np.savez(path, **{**arrays, "clusters": arrays["clusters"][:-1]})
    with pytest.raises(InputError, match="one row per utterance"):
        Pool.load(path)
    np.savez(path, **{**arrays, "log_f0_sd": arrays["log_f0_sd"] * np.nan})
    with pytest.raises(InputError, match="not finite"):
        Pool.load(path)
    del arrays["unvoiced"]
    np.savez(path, **arrays)
    with pytest.raises(InputError, match="no array 'unvoiced'"):
        Pool.load(path)
    np.savez(path, **{**arrays, "unvoiced": np.array([{}], dtype=object)})
    with pytest.raises(InputError, match="not a readable"):
        Pool.load(path)
    with pytest.raises(InputError, match="no utterance"):
        build_pool([])


def test_reading_a_pool_and_choosing_needs_neither_torch_nor_sklearn(pool: Pool, tmp_path: Path) -> None:
    pool.save(tmp_path / "pool.npz")
    code = (
        "import sys, json, numpy\nfrom pathlib import Path\n"
        "from voxveil.features.speaker.pool import Pool\n"
        "from voxveil.features.speaker.targets import select_target\n"
        f"pool = Pool.load(Path({str(tmp_path / 'pool.npz')!r}))\n"
        "select_target(pool, numpy.random.default_rng(1), 3)\n"
        "print(json.dumps([n for n in ('torch', 'sklearn', 'speechbrain', 'scipy') if n in sys.modules]))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(result.stdout) == []


def test_dense_clusters_have_at_least_the_mean_number_of_speakers(pool: Pool) -> None:
    sizes = {
        c: len({s for s, d in zip(pool.speakers, pool.clusters, strict=True) if c == d}) for c in range(3)
    }
    assert sorted(sizes.values()) == [1, 4, 5]
    assert {sizes[cluster] for cluster in dense_clusters(pool)} == {4, 5}
    assert dense_clusters(build_pool(made_entries((1,)))) == [0]


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 40))
def test_a_target_is_a_unit_average_of_members_of_one_dense_cluster(seed: int, members: int) -> None:
    pool = grouped_pool()
    target = select_target(pool, np.random.default_rng(seed), members)
    again = select_target(pool, np.random.default_rng(seed), members)
    assert np.array_equal(target.embedding, again.embedding)
    assert np.linalg.norm(target.embedding) == pytest.approx(1.0, abs=1e-6)
    assert target.cluster in dense_clusters(pool)
    inside = pool.clusters == target.cluster
    low, high = pool.log_f0_mean[inside].min(), pool.log_f0_mean[inside].max()
    assert low - 1e-9 <= target.log_f0_mean <= high + 1e-9
    own = pool.embeddings[inside] @ target.embedding
    assert own.min() > (pool.embeddings[~inside] @ target.embedding).max()


def test_targets_vary_and_reach_every_dense_cluster(pool: Pool) -> None:
    draw = np.random.default_rng(3)
    targets = [select_target(pool, draw, 3) for _ in range(60)]
    assert {target.cluster for target in targets} == set(dense_clusters(pool))
    assert len({target.embedding.tobytes() for target in targets}) > 50


def test_no_members_is_refused(pool: Pool) -> None:
    with pytest.raises(ParamsError, match="target_members: got 0"):
        select_target(pool, np.random.default_rng(0), 0)


def literal_accuracy(pool: Pool) -> float:
    right = []
    for i, speaker in enumerate(pool.speakers):
        scores = {}
        for other in sorted(set(pool.speakers)):
            mine = [j for j, s in enumerate(pool.speakers) if s == other and j != i]
            if mine:
                mean = np.sum([pool.embeddings[j].astype(np.float64) for j in mine], axis=0)
                scores[other] = float(pool.embeddings[i] @ mean / np.linalg.norm(mean))
        if speaker in scores:
            right.append(max(scores, key=lambda s: scores[s]) == speaker)
    return float(np.mean(right))


def test_nearest_voice_accuracy_is_the_literal_one() -> None:
    draw = np.random.default_rng(8)
    entries = [
        PoolEntry(f"u{i}", "abc"[i % 3], "F", unit(np.eye(6)[i % 3] + draw.normal(0, 0.6, 6)), track(1.0))
        for i in range(20)
    ]
    pool = build_pool([*entries, PoolEntry("alone", "d", "F", unit(draw.normal(size=6)), track(1.0))])
    assert 0.3 < nearest_voice_accuracy(pool) < 1.0
    assert nearest_voice_accuracy(pool) == pytest.approx(literal_accuracy(pool))
    single = build_pool([PoolEntry("x", "x", "F", unit(np.ones(6)), track(1.0))])
    assert nearest_voice_accuracy(single) is None
