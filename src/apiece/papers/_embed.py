"""Frozen embeddings of images and texts, and their principal components.

Both networks are read from disk and nothing is downloaded: ResNet-50 from a file of weights, a
model of the BERT family from a folder as `transformers` saves it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from apiece._base.typing import AnyArray, FloatArray
from apiece.errors import DataError, MissingExtraError

COMPONENTS: Final = 256  # the paper's
_BATCH: Final = 64
_MEAN: Final = (0.485, 0.456, 0.406)  # of ImageNet's channels, which the weights expect
_STD: Final = (0.229, 0.224, 0.225)


def principal_components(X: FloatArray, n: int = COMPONENTS) -> FloatArray:
    """Return the first components of the rows, at most ``n``, not whitened."""
    from sklearn.decomposition import PCA

    n = min(n, *X.shape)
    return np.asarray(PCA(n, svd_solver="full").fit_transform(X), dtype=np.float64)


def embed_images(images: AnyArray, folder: Path) -> FloatArray:
    """Embed images ``(n, height, width, 3)`` by the last layer but one of a ResNet-50."""
    torch, vision = _needed("torch", "images"), _needed("torchvision", "images")
    weights = sorted(folder.glob("resnet50*.pth"))
    if not weights:
        raise DataError(
            f"{folder} holds no weights of ResNet-50: expected a file resnet50*.pth of torchvision "
            "to embed the images with. Put it there, or a prepared cifar10.npz with X and y."
        )
    network = vision.models.resnet50()
    network.load_state_dict(torch.load(weights[0], weights_only=True))
    network.fc = torch.nn.Identity()
    network.eval()
    mean, std = (torch.tensor(row).reshape(1, 3, 1, 1) for row in (_MEAN, _STD))
    parts = []
    with torch.inference_mode():
        for start in range(0, len(images), _BATCH):
            part = torch.from_numpy(images[start : start + _BATCH].copy()).permute(0, 3, 1, 2)
            part = torch.nn.functional.interpolate(part / 255.0, size=160, mode="bicubic")
            parts.append(network((part - mean) / std).numpy())
    return np.concatenate(parts).astype(np.float64)


def embed_texts(texts: list[str], folder: Path) -> FloatArray:
    """Embed texts by the mean of the last hidden states of a model of the BERT family."""
    torch, library = _needed("torch", "texts"), _needed("transformers", "texts")
    models = sorted(path.parent for path in folder.glob("*bert*/config.json"))
    if not models:
        raise DataError(
            f"{folder} holds no model of the BERT family: expected a folder such as "
            "bert-base-uncased with config.json, to embed the texts with. Save one there with "
            "transformers, or put a prepared imdb.npz with X and y."
        )
    tokens = library.AutoTokenizer.from_pretrained(str(models[0]), local_files_only=True)
    network = library.AutoModel.from_pretrained(str(models[0]), local_files_only=True).eval()
    parts = []
    with torch.inference_mode():
        for start in range(0, len(texts), _BATCH):
            batch = tokens(
                texts[start : start + _BATCH],
                truncation=True,
                max_length=512,
                padding=True,
                return_tensors="pt",
            )
            hidden = network(**batch).last_hidden_state
            is_word = batch["attention_mask"].unsqueeze(-1)
            parts.append(((hidden * is_word).sum(1) / is_word.sum(1)).numpy())
    return np.concatenate(parts).astype(np.float64)


def _needed(library: str, what: str) -> Any:
    from importlib import import_module

    try:
        return import_module(library)
    except (ImportError, OSError, RuntimeError) as error:  # the last if its torch is another one
        prepared = {"images": "cifar10.npz", "texts": "imdb.npz"}[what]
        is_missing = isinstance(error, ModuleNotFoundError)
        state = "is not installed" if is_missing else f"cannot be loaded ({error})"
        raise MissingExtraError(
            f"Embedding {what} needs {library}, which {state}. Install it, or put a prepared "
            f"{prepared} with X and y into the folder of data."
        ) from error
