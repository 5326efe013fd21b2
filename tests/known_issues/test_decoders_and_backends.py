"""A new torchaudio dropped its backends and needed another decoder; speaker toolkits failed on import.

Seen in https://github.com/speechbrain/speechbrain/issues/2977 and
https://github.com/jimbozhang/xares/issues/30. Everything that attacks or reads audio works without network,
without torchaudio's decoders and without torchcodec.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from made_corpora import vowel

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

#: Runs with no way to the network, and with every other decoder refused.
CODE = """
import importlib, socket, sys

class Refused:
    names = ("torchcodec", "librosa", "audioread", "av", "ffmpeg")
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.names:
            raise ImportError(f"{name} is refused here")

def refuse(*args, **kwargs):
    raise OSError("no network here")

sys.meta_path.insert(0, Refused())
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse

from pathlib import Path
import torch, torchaudio
torch.manual_seed(0)
for name in ("load", "save", "info"):
    setattr(torchaudio, name, refuse)

import numpy as np
from voxveil.audio.files import read_recording
from voxveil.attack.attackers.registry import train_attacker
from voxveil.attack.attackers.ecapa import EcapaAttacker
from voxveil.features.speaker.encoder import ECAPA, X_VECTOR, EncoderSize, SpeakerEncoder, SpeakerNetwork

first, second = (read_recording(Path(path)).audio for path in sys.argv[1:3])
assert len(first) == len(second) == 16_000
assert np.abs(first - second).max() < 1e-4
for kind in (ECAPA, X_VECTOR):
    encoder = SpeakerEncoder(SpeakerNetwork(EncoderSize(8, 8, kind)))
    difference = np.abs(encoder.embed(first) - encoder.embed(second)).max()
    # An untrained network is a rough function of 16 bit: a wrong decoder would be off by the whole embedding.
    assert difference < 0.1 * np.abs(encoder.embed(first)).max(), difference
print("read", [name for name in Refused.names if name in sys.modules])
"""


def test_wav_and_flac_are_read_and_embedded_without_network_or_decoder(tmp_path: Path) -> None:
    for suffix in ("wav", "flac"):
        soundfile.write(tmp_path / f"a.{suffix}", vowel(16_000).astype(np.float32), 16_000, subtype="PCM_16")
    command = [sys.executable, "-c", CODE, str(tmp_path / "a.wav"), str(tmp_path / "a.flac")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-800:]
    assert done.stdout.strip() == "read []"
