"""What a reader must refuse by name, and what it must keep."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from voxveil.cli.main import main
from voxveil.metrics.evaluation import read_evaluation
from voxveil.runtime.errors import InputError

TRIALS = "A a1 target\nA b1 nontarget\nB a1 nontarget\nB b1 target\n"
SCORES = "A a1 0.9\nB a1 0.1\nA b1 -0.2\nB b1 1.5\n"


def write(tmp_path, trials=TRIALS, scores=SCORES, **more):
    paths = {}
    for name, text in {"trials": trials, "scores": scores, **more}.items():
        paths[name] = tmp_path / name
        paths[name].write_text(text)
    return paths


def test_plain_files(tmp_path):
    found = read_evaluation(**write(tmp_path))
    assert sorted(found.scores.target) == [0.9, 1.5]
    assert sorted(found.scores.nontarget) == [-0.2, 0.1]
    assert found.scores.n_speakers == 2
    assert found.ranks is not None and found.ranks.scores.tolist() == [[0.9, 0.1], [-0.2, 1.5]]
    assert found.ranks.speaker_index.tolist() == [0, 1]


def test_gzip_by_content(tmp_path):
    paths = write(tmp_path)
    plain = read_evaluation(**paths)
    for path in paths.values():
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert np.array_equal(read_evaluation(**paths).scores.scores, plain.scores.scores)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"scores": SCORES.replace("B b1 1.5\n", "")}, ["B b1", "no score for trial"]),
        (
            {"trials": TRIALS.replace("B b1 target\n", "A c1 target\n"), "scores": SCORES},
            ["B b1", "no trial"],
        ),
        ({"scores": SCORES + "C a1 1\n"}, ["scores:5", "C a1", "no trial"]),
        ({"scores": SCORES.replace("0.1", "nan")}, ["scores:2", "B a1", "nan", "finite"]),
        ({"scores": SCORES.replace("0.1", "-inf")}, ["scores:2", "B a1", "-inf", "finite"]),
        ({"scores": SCORES.replace("0.1", "1e999")}, ["scores:2", "B a1", "finite"]),
        ({"scores": SCORES.replace("0.1", "1_0")}, ["scores:2", "B a1", "finite"]),
        ({"scores": SCORES.replace("0.1", "high")}, ["scores:2", "B a1", "high"]),
        (
            {"scores": SCORES.replace("B a1 0.1", "B a1")},
            ["scores:2", "2 fields", "ENROLMENT UTTERANCE SCORE"],
        ),
        (
            {"trials": TRIALS.replace("nontarget", "impostor")},
            ["trials:2", "'impostor'", "target, nontarget"],
        ),
        ({"trials": TRIALS + "a1 c1 nontarget\n"}, ["a1", "both enrolled and tested"]),
        ({"trials": "A a1 target\n", "scores": "A a1 1\n"}, ["no nontarget trial"]),
        ({"trials": "A a1 nontarget\n", "scores": "A a1 1\n"}, ["no target trial"]),
        ({"trials": TRIALS + "A a1 target\n"}, ["A a1", "listed twice", "--allow-repeats"]),
        ({"trials": TRIALS + "A a1 nontarget\n"}, ["A a1", "both as target and as nontarget"]),
        ({"scores": SCORES + "A a1 0.8\n"}, ["A a1", "scored twice", "--allow-repeats"]),
        ({"utt2spk": "a1 A\n"}, ["utt2spk", "no speaker for utterance b1"]),
        ({"utt2spk": "a1 A\nb1 B\na1 B\n"}, ["utt2spk:3", "a1"]),
        ({"utt2spk": "a1 A\nb1 A\nx B\n"}, ["A b1", "labelled nontarget", "one speaker"]),
        ({"utt2spk": "a1 X\nb1 Y\n"}, ["enrolment A", "--enrolments"]),
        ({"enrolments": "A a0\n"}, ["enrolments", "enrolment B", "not listed"]),
        ({"enrolments": "A a0 b1\nB b0\n"}, ["b1", "both enrolled", "tested"]),
        (
            {"enrolments": "A a0 x\nB b0\n", "utt2spk": "a0 S\nx T\nb0 T\na1 S\nb1 T\n"},
            ["enrolment A", "2 speakers"],
        ),
    ],
)
def test_refused_by_name(change, names, tmp_path, capsys):
    paths = write(tmp_path, **change)
    with pytest.raises(InputError) as error:
        read_evaluation(**paths)
    for name in names:
        assert name in str(error.value), str(error.value)
    assert "\n" not in str(error.value)
    out = tmp_path / "out.json"
    options = [x for key, path in paths.items() for x in (f"--{key}", str(path))]
    assert main(["evaluate", *options, "--json", str(out)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("voxveil: error: ") and captured.err.count("\n") == 1
    assert not out.exists() and captured.out == ""


def test_repeats_are_kept_each_and_never_averaged(tmp_path):
    found = read_evaluation(**write(tmp_path, scores=SCORES + "A a1 0.1\nA a1 0.9\n"), allow_repeats=True)
    assert sorted(found.scores.target) == [0.1, 0.9, 0.9, 1.5]
    assert found.ranks is None and "once against the same" in str(found.rank_reason)
    listed_twice = write(tmp_path, trials=TRIALS + "A a1 target\n")
    with pytest.raises(InputError, match="no score for trial A a1"):
        read_evaluation(**listed_twice, allow_repeats=True)


def test_speakers_from_utt2spk_and_enrolments(tmp_path):
    text = "a0 S\nb0 T\na1 S\nb1 T\n"
    found = read_evaluation(**write(tmp_path, utt2spk=text, enrolments="A a0\nB b0\n"))
    assert found.scores.n_speakers == 2
    assert (
        found.scores.enrol_speaker == found.scores.test_speaker
    ).tolist() == found.scores.is_target.tolist()


def test_speakers_unknown_without_a_target_trial(tmp_path):
    found = read_evaluation(**write(tmp_path, trials=TRIALS + "A c1 nontarget\n", scores=SCORES + "A c1 0\n"))
    assert found.scores.n_speakers is None
    assert "1 of 3 tested utterances and 0 of 2 enrolments" in str(found.scores.speaker_reason)
    assert "c1" not in str(found.scores.speaker_reason), "reasons travel to MLflow: no names"
    assert "83.3 %" in str(found.rank_reason)


def test_contradicting_labels_are_said(tmp_path):
    trials = "A a1 target\nA a2 target\nB a1 target\nB a2 nontarget\n"
    scores = "A a1 1\nA a2 1\nB a1 1\nB a2 1\n"
    found = read_evaluation(**write(tmp_path, trials, scores))
    assert "1 nontarget trials" in str(found.scores.speaker_reason)


@pytest.mark.parametrize("case", ["missing", "folder", "not gzip", "cut gzip", "latin", "no trials"])
def test_unreadable_files(case, tmp_path):
    paths = write(tmp_path)
    if case == "missing":
        paths["scores"] = tmp_path / "absent"
    elif case == "folder":
        paths["scores"] = tmp_path
    elif case == "not gzip":
        paths["scores"].write_bytes(b"\x1f\x8bnot gzip at all")
    elif case == "cut gzip":
        paths["scores"].write_bytes(gzip.compress(SCORES.encode() * 50)[:40])
    elif case == "latin":
        paths["scores"].write_bytes("Ä a1 1\n".encode("latin-1"))
    else:
        del paths["trials"]
    with pytest.raises(InputError) as error:
        read_evaluation(**paths)
    assert str(paths["scores"]) in str(error.value)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"target": [1.0, np.nan], "nontarget": [0.0]}, "target[1] is nan"),
        ({"target": [1.0], "nontarget": []}, "nontarget"),
        ({"target": [[1.0]], "nontarget": [0.0]}, "1-D"),
        ({"target": [1.0]}, "needs target and nontarget"),
        ({"target": ["x"], "nontarget": ["y"]}, "numbers"),
        (
            {"scores": np.eye(2), "input_labels": [0, 1], "reference_labels": [0, 0]},
            "label 0 is listed twice",
        ),
        (
            {"scores": np.eye(2), "input_labels": [0, 7], "reference_labels": [0, 1]},
            "input 1 is of speaker 7",
        ),
        ({"scores": np.eye(3), "input_labels": [0, 1], "reference_labels": [0, 1, 2]}, "do not fit"),
        ({"scores": [[0, np.nan]], "input_labels": [0], "reference_labels": [0, 1]}, "scores[0, 1] is nan"),
        ({"scores": [[1.0]], "input_labels": [0], "reference_labels": [0]}, "need 1 and 2"),
        ({"target": [1j], "nontarget": [0.0]}, "array target has dtype complex128"),
        ({"target": [1.0], "nontarget": [True]}, "array nontarget has dtype bool"),
        ({"target": ["1"], "nontarget": [0.0]}, "array target has dtype <U1"),
        ({"target": [b"1"], "nontarget": [0.0]}, "array target has dtype |S1"),
        (
            {"target": [2**53 + 1], "nontarget": [0.0]},
            "array target of dtype int64 holds integers beyond 2^53",
        ),
        ({"target": [-(2**53) - 1], "nontarget": [0.0]}, "array target of dtype int64"),
        ({"target": [2**63], "nontarget": [0.0]}, "array target of dtype uint64"),
        (
            {"scores": np.eye(2) * 1j, "input_labels": [0, 1], "reference_labels": [0, 1]},
            "array scores has dtype complex128",
        ),
        (
            {"scores": np.eye(2) > 0, "input_labels": [0, 1], "reference_labels": [0, 1]},
            "array scores has dtype bool",
        ),
    ],
)
def test_npz_refused(arrays, words, tmp_path):
    path = tmp_path / "s.npz"
    np.savez(path, **{k: np.array(v) for k, v in arrays.items()})
    with pytest.raises(InputError) as error:
        read_evaluation(path)
    assert words in str(error.value) and str(path) in str(error.value)


def test_npz_never_unpickles(tmp_path):
    path = tmp_path / "s.npz"
    np.savez(path, target=np.array([{"a": 1}], dtype=object), nontarget=np.zeros(2))
    with pytest.raises(InputError, match="array target is not readable .it holds pickled") as error:
        read_evaluation(path)
    assert "allow_pickle" not in str(error.value)
    path.write_bytes(b"no zip")
    with pytest.raises(InputError, match="not a readable") as error:
        read_evaluation(path)
    assert "allow_pickle" not in str(error.value)
    path.write_bytes(b"PK\x03\x04 broken")
    with pytest.raises(InputError, match="not a readable"):
        read_evaluation(path)


def test_npz_integers_that_float64_holds_are_scores(tmp_path):
    path = tmp_path / "s.npz"
    np.savez(path, target=np.array([2**53, 5]), nontarget=np.array([-(2**53)]))
    assert read_evaluation(path).scores.target.tolist() == [2.0**53, 5.0]


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    plain = read_evaluation(**write(tmp_path))
    for zipped in (False, True):
        paths = write(tmp_path)
        for path in (paths["scores"], paths["trials"]):
            data = b"\xef\xbb\xbf" + path.read_bytes()
            path.write_bytes(gzip.compress(data) if zipped else data)
        marked = read_evaluation(**paths)
        assert np.array_equal(marked.scores.scores, plain.scores.scores)
        assert np.array_equal(marked.scores.is_target, plain.scores.is_target)


def test_a_very_long_token_is_not_repeated_whole(tmp_path):
    paths = write(tmp_path)
    fields = SCORES.split()
    for token in ("9" * 5000, "x" * 5000):
        paths["scores"].write_text(f"{fields[0]} {fields[1]} {token}\n")
        with pytest.raises(InputError, match="5000 characters.; it must be a finite number") as error:
            read_evaluation(**paths)
        assert len(str(error.value)) < 400
    paths["trials"].write_text(f"{fields[0]} {fields[1]} {'t' * 5000}\n")
    with pytest.raises(InputError, match="5000 characters.*allowed: target, nontarget") as error:
        read_evaluation(**paths)
    assert len(str(error.value)) < 400


def test_rank_file_beside_scores(tmp_path):
    rank = tmp_path / "rank.npz"
    np.savez(
        rank,
        scores=np.eye(3),
        input_labels=np.array(["x", "y", "z"]),
        reference_labels=np.array(["x", "y", "z"]),
    )
    target, other = tmp_path / "t.npz", write(tmp_path)
    np.savez(target, target=[1.0, 2.0], nontarget=[0.0, 1.0])
    assert read_evaluation(target).ranks is None
    assert read_evaluation(target, rank=rank).ranks.speakers == ("x", "y", "z")
    with pytest.raises(InputError, match="ranks need scores"):
        read_evaluation(target, rank=target)
    with pytest.raises(InputError, match="--trials"):
        read_evaluation(target, other["trials"])


def test_streamed_gzip_gives_the_same_values_as_arrays(tmp_path):
    """A few thousand trials by way of text and by way of arrays (millions: benchmarks/metrics)."""
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(60, 50))
    matrix[np.arange(60), np.arange(60) % 50] += 1
    lines: list[tuple[str, str, bool, float]] = [
        (f"m{j}", f"u{i}", i % 50 == j, matrix[i, j]) for i in range(60) for j in range(50)
    ]
    lines = [lines[k] for k in rng.permutation(len(lines))]
    trials, scores = tmp_path / "t.gz", tmp_path / "s.gz"
    with gzip.open(trials, "wt") as out:
        out.writelines(f"{e} {u} {'target' if same else 'nontarget'}\n" for e, u, same, _ in lines)
    with gzip.open(scores, "wt") as out:
        out.writelines(f"{e}\t{u}  {float(x)!r}\n" for e, u, _, x in lines)
    found = read_evaluation(scores, trials)
    assert found.ranks is not None
    position = {name: j for j, name in enumerate(found.ranks.speakers)}
    assert sorted(found.scores.scores) == sorted(matrix.ravel())
    assert len(position) == 50 and found.scores.n_speakers == 50
