"""Small files in the formats in which the paper's datasets are published."""

from __future__ import annotations

import pickle
import struct
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from apiece.errors import DataError, MissingExtraError
from apiece.papers import _embed, _formats
from apiece.papers._sources import SOURCES, at_hand, load

ADULT = """\
39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, \
2174, 0, 40, United-States, <=50K
52, Self-emp-not-inc, 209642, HS-grad, 9, Married-civ-spouse, Exec-managerial, Husband, White, \
Male, 0, 0, 45, United-States, >50K
"""
ADULT_TEST = """\
|1x3 Cross validator
25, ?, 226802, 11th, 7, Never-married, Machine-op-inspct, Own-child, Black, Male, 0, 0, 40, \
United-States, <=50K.
"""


def miniboone(path, signal, background):
    rows = np.concatenate([signal, background])
    lines = [f" {len(signal)} {len(background)}"]
    lines += ["  " + "  ".join(f"{value: .6E}" for value in row) for row in rows]
    path.write_text("\n".join(lines) + "\n")


def python2_batch(images, labels):
    """Return a batch as Python 2 pickled it: byte strings, the old home of NumPy's arrays."""
    n = len(images)
    data = images.transpose(0, 3, 1, 2).reshape(n, 3072).tobytes()
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
        b"(K\x01K" + bytes([n]) + b"M\x00\x0c\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R"
        b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T"
        + struct.pack("<i", len(data))
        + data
        + b"tb"
    )
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}(U\x04data" + array + b"U\x06labels" + numbers + b"u."


def test_miniboone_reads_signal_first_and_leaves_out_what_was_not_reconstructed(tmp_path):
    rng = np.random.default_rng(0)
    signal, background = rng.normal(size=(4, 50)), rng.normal(size=(6, 50))
    background[2] = -999
    miniboone(tmp_path / "MiniBooNE_PID.txt", signal, background)
    rows = _formats.read_miniboone(tmp_path / "MiniBooNE_PID.txt")
    assert_array_equal(rows.y, [1] * 4 + [0] * 5)
    assert_allclose(rows.X, np.concatenate([signal, np.delete(background, 2, 0)]), rtol=1e-5)


def test_a_truncated_miniboone_is_refused(tmp_path):
    path = tmp_path / "MiniBooNE_PID.txt"
    miniboone(path, np.ones((3, 50)), np.ones((3, 50)))
    path.write_text("\n".join(path.read_text().splitlines()[:-1]))
    with pytest.raises(DataError, match=r"holds 5 events: expected 6"):
        _formats.read_miniboone(path)
    path.write_text("")
    with pytest.raises(DataError, match="nothing"):
        _formats.read_miniboone(path)
    path.write_text("these are words\n")
    with pytest.raises(DataError, match="expected two counts"):
        _formats.read_miniboone(path)


def test_adult_keeps_numbers_and_makes_a_column_for_every_category(tmp_path):
    (tmp_path / "adult.data").write_text(ADULT)
    (tmp_path / "adult.test").write_text(ADULT_TEST)
    rows = _formats.read_adult(tmp_path)
    assert_array_equal(rows.y, [0, 1, 0])
    assert_array_equal(rows.X[:, :6][0], [39, 77516, 13, 2174, 0, 40])
    # 8 categorical columns, each row in one category of each, "?" being one of them.
    assert_array_equal(rows.X[:, 6:].sum(axis=1), [8, 8, 8])
    assert rows.X.shape[1] == 6 + (3 + 3 + 2 + 3 + 3 + 2 + 1 + 1)


def test_a_wrong_income_is_named(tmp_path):
    (tmp_path / "adult.data").write_text(ADULT.replace(">50K", "rich"))
    with pytest.raises(DataError, match="'rich'"):
        _formats.read_adult(tmp_path)


def test_cifar_batches_of_python_2_and_3_are_read_alike(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    (tmp_path / "data_batch_1").write_bytes(python2_batch(images, [3, 9, 0]))
    flat = images.transpose(0, 3, 1, 2).reshape(3, 3072)
    batch = {b"data": flat, b"labels": [1, 2, 3], b"filenames": [b"a.png"]}
    (tmp_path / "data_batch_2").write_bytes(pickle.dumps(batch, protocol=2))
    rows = _formats.read_cifar10(tmp_path)
    assert_array_equal(rows.y, [3, 9, 0, 1, 2, 3])
    assert_array_equal(rows.X, np.concatenate([images, images]))


def test_a_batch_that_would_run_code_is_refused_unopened(tmp_path):
    made = tmp_path / "made"

    class Trap:
        def __reduce__(self):
            return (open, (str(made), "w"))

    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({b"data": Trap()}, protocol=2))
    with pytest.raises(DataError, match=r"no plain data .*open"):
        _formats.read_cifar10(tmp_path)
    assert not made.exists()


@pytest.mark.parametrize("content", [b"", b"\x80\x02}.", b"garbage"])
def test_a_broken_batch_is_refused(tmp_path, content):
    (tmp_path / "data_batch_1").write_bytes(content)
    with pytest.raises(DataError, match="data_batch_1"):
        _formats.read_cifar10(tmp_path)


def test_reviews_are_read_from_folders_or_a_table(tmp_path):
    for part, word, name, text in [
        ("train", "pos", "0_9.txt", "grand"),
        ("test", "pos", "1_7.txt", "fine, really"),
        ("train", "neg", "0_2.txt", 'dull "and" long'),
    ]:
        folder = tmp_path / "aclImdb" / part / word
        folder.mkdir(parents=True)
        (folder / name).write_text(text)
    rows = _formats.read_imdb_folder(tmp_path / "aclImdb")
    assert dict(zip(rows.X, rows.y.tolist(), strict=True)) == {
        'dull "and" long': 0,
        "grand": 1,
        "fine, really": 1,
    }
    table = tmp_path / "IMDB Dataset.csv"
    table.write_text('review,sentiment\n"fine, really",positive\ndull,negative\n')
    rows = _formats.read_imdb_table(table)
    assert rows.X == ["fine, really", "dull"]
    assert_array_equal(rows.y, [1, 0])
    table.write_text("review,sentiment\nwell,mixed\n")
    with pytest.raises(DataError, match="'mixed'"):
        _formats.read_imdb_table(table)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"train/pos"):
        _formats.read_imdb_folder(tmp_path / "empty")


def test_a_prepared_file_is_split_into_pool_and_1000_rows_that_score(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [4000, 2000])
    X = (rng.normal(size=(6000, 3)) * 7 + 50).astype(np.float32)
    np.savez(tmp_path / "magic.npz", X=X, y=y)
    dataset = load("magic", tmp_path, cache=tmp_path / "cache")
    assert (dataset.n_pool, dataset.n_validation) == (5000, 1000)
    assert (dataset.y_val == 1).sum() == 333
    # Tables are standardised over the pool; embeddings keep the scale of their components.
    assert_allclose(dataset.X.std(axis=0), 1)
    np.savez(tmp_path / "imdb.npz", X=X, y=y)
    embedded = load("imdb", tmp_path, cache=tmp_path / "cache")
    assert_allclose(embedded.X.std(axis=0), 7, rtol=0.1)


def test_what_is_missing_is_reported_with_where_to_find_it(tmp_path):
    with pytest.raises(DataError, match=r"(?s)none of the datasets.*UCI.*aclImdb_v1") as caught:
        at_hand(tmp_path)
    assert "CIFAR-10" in str(caught.value)
    with pytest.raises(DataError, match=r"no MiniBooNE: expected MiniBooNE_PID\.txt"):
        load("miniboone", tmp_path, cache=tmp_path)
    (tmp_path / "adult.data").write_text(ADULT)
    np.savez(tmp_path / "higgs.npz", X=np.zeros((2, 1)), y=[0, 1])
    assert at_hand(tmp_path) == ("adult", "higgs")
    np.savez(tmp_path / "higgs.npz", X=np.zeros((2, 1)))
    with pytest.raises(DataError, match=r"higgs\.npz"):
        load("higgs", tmp_path, cache=tmp_path)


def test_components_are_those_of_largest_variance():
    rng = np.random.default_rng(0)
    scales = np.array([5.0, 3.0, 0.1, 0.01])
    X = rng.normal(size=(200, 4)) * scales + 9
    found = _embed.principal_components(X, 2)
    assert found.shape == (200, 2)
    assert_allclose(found.std(axis=0), [5, 3], rtol=0.15)
    assert _embed.principal_components(X).shape == (200, 4)


def test_texts_are_embedded_by_the_mean_over_their_words_and_kept(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    for word, label in [("pos", "good "), ("neg", "bad ")]:
        folder = tmp_path / "aclImdb" / "train" / word
        folder.mkdir(parents=True)
        for i in range(10):
            (folder / f"{i}_1.txt").write_text(label * (i + 1))
    with pytest.raises((DataError, MissingExtraError), match=r"imdb\.npz"):
        load("imdb", tmp_path, cache=tmp_path / "kept")

    class Tokens(dict):
        pass

    def tokens(texts, **_):
        n = [len(text.split()) for text in texts]
        mask = torch.tensor([[int(j < k) for j in range(max(n))] for k in n])
        ids = torch.tensor([[float("good" in text)] * max(n) for text in texts])
        return Tokens(attention_mask=mask, input_ids=ids)

    class Network:
        def eval(self):
            return self

        def __call__(self, input_ids, attention_mask):
            # Padding holds garbage, which the mean must leave out.
            value = torch.where(attention_mask > 0, input_ids, torch.tensor(1e6))
            return SimpleNamespace(last_hidden_state=value.unsqueeze(-1).repeat(1, 1, 2))

    library = SimpleNamespace(
        AutoTokenizer=SimpleNamespace(from_pretrained=lambda *_, **__: tokens),
        AutoModel=SimpleNamespace(from_pretrained=lambda *_, **__: Network()),
    )
    monkeypatch.setitem(sys.modules, "transformers", library)
    (tmp_path / "distilbert").mkdir()
    (tmp_path / "distilbert" / "config.json").write_text("{}")
    dataset = load("imdb", tmp_path, cache=tmp_path / "kept")
    assert dataset.n_pool + dataset.n_validation == 20
    first = np.abs(dataset.X[:, 0])
    assert_allclose(first, np.sqrt(0.5), rtol=1e-6)  # (1, 1) and (0, 0) around their mean
    monkeypatch.setitem(sys.modules, "transformers", None)
    again = load("imdb", tmp_path, cache=tmp_path / "kept")
    assert_array_equal(again.X, dataset.X)


def plain_images(*colours):
    """Images of one colour each, 8 pixels wide."""
    return np.stack([np.full((8, 8, 3), colour, dtype=np.uint8) for colour in colours])


def test_images_are_embedded_by_what_comes_before_the_last_layer(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    images = plain_images((255, 0, 0), (0, 128, 255))

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(3, 1)

        def forward(self, x):
            assert x.shape[1:] == (3, 160, 160)
            return self.fc(x.mean((2, 3)))

    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(MissingExtraError, match=r"needs torchvision.*prepared cifar10\.npz"):
        _embed.embed_images(images, tmp_path)
    library = SimpleNamespace(models=SimpleNamespace(resnet50=Network))
    monkeypatch.setitem(sys.modules, "torchvision", library)
    with pytest.raises(DataError, match=r"no weights of ResNet-50"):
        _embed.embed_images(images, tmp_path)
    torch.save(Network().state_dict(), tmp_path / "resnet50-some.pth")
    found = _embed.embed_images(images, tmp_path)
    # Channels in the order red, green, blue, normalised as ImageNet's.
    right = (images[:, 0, 0] / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    assert_allclose(found, right, rtol=1e-5)


def test_a_resnet_of_random_weights_embeds_tiny_images(tmp_path):
    torch, vision = pytest.importorskip("torch"), pytest.importorskip("torchvision")
    torch.manual_seed(0)
    network = vision.models.resnet50()
    torch.save(network.state_dict(), tmp_path / "resnet50-random.pth")
    images = plain_images((255, 0, 0), (0, 128, 255), (255, 0, 0))
    found = _embed.embed_images(images, tmp_path)
    assert found.shape == (3, 2048)
    assert (found >= 0).all()  # averages of what comes out of a rectifier
    assert_allclose(found[0], found[2], rtol=1e-5)
    assert np.abs(found[0] - found[1]).max() > 1e-6


def test_every_source_says_what_to_download():
    for source in SOURCES.values():
        assert "UCI" in source.where or "Download" in source.where
