"""A trained amortized network: laws for any point with features, kept in one file."""

from __future__ import annotations

import io
import json
import os
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from apiece._base.files import check_schema, write_whole
from apiece._base.typing import AnyArray, FloatArray, IntArray, PointIds
from apiece.errors import StoreError
from apiece.estimators._features import as_codes, as_features, check_width
from apiece.estimators._network import NetworkConfig, load_torch, local
from apiece.estimators._reader import FeatureProbe, Inputs
from apiece.estimators._training import tensors, visible
from apiece.laws import FitStatus, Laws
from apiece.laws._words import family_from_json
from apiece.laws.provenance import plain
from apiece.laws.sizes import middle
from apiece.laws.status import mark

SCHEMA_VERSION: Final = 3
_ROWS: Final = 20_000  # points predicted at once


class Predicted(NamedTuple):
    r"""What each member predicts of ``n`` points.

    ``local`` are coordinates of the laws, shape ``(n_members, n, p)``; ``log_s`` and ``beta`` are
    the logarithm of the noise at $k_\mathrm{ref}$ and its decay, shape ``(n_members, n)``.
    """

    local: FloatArray
    log_s: FloatArray
    beta: FloatArray

    def average(self) -> Predicted:
        """Return the mean of the members, as if it were one."""
        return Predicted(*(column.mean(axis=0, keepdims=True) for column in self))

    def take(self, member: IntArray) -> Predicted:
        """Return for each point the prediction of one member, as if it were one."""
        return Predicted(*(column[member, np.arange(len(member))][None] for column in self))


@dataclass(frozen=True, eq=False)
class AmortizedNetwork:
    """A trained network; `Amortized.train` makes it, `laws_for` uses it.

    Parameters
    ----------
    shape
        Sizes of a member, family of the laws.
    reader
        Turns features and labels into what the network sees.
    weights
        Arrays by name, with a leading axis of members.
    unit
        Unit of the contributions that the network was trained in.
    k_range
        The smallest and the largest cardinality that it was trained on.
    scatter
        Covariance of laws around their prediction, in units of each point's predicted noise.
    noise_share
        Part of the predicted variance that is noise; the rest is the scatter of laws.
    attrs, diagnostics
        Where it came from; how it did on what it did not see.

    Examples
    --------
    >>> from apiece import synthetic
    >>> from apiece.estimators import Amortized
    >>> X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2
    >>> table = synthetic.sample(synthetic.random_laws(50, random_state=0), samples=5)
    >>> fast = Amortized(epochs=1, folds=2, width=4, weight_decay=(0.01,))
    >>> network = fast.train(table, X, y)
    >>> network.laws_for([[1.0, 0.0]], [1]).n_points
    1
    """

    shape: NetworkConfig
    reader: FeatureProbe
    weights: dict[str, FloatArray]
    unit: float
    k_range: tuple[int, int]
    scatter: FloatArray
    noise_share: float = 1.0
    attrs: dict[str, Any] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        n_members = len(self.weights["bias_1"])
        return (
            f"<AmortizedNetwork: {self.shape.family.name} laws from {self.shape.n_features} "
            f"features, {n_members} members of width {self.shape.width}>"
        )

    def laws_for(
        self, X: npt.ArrayLike, y: npt.ArrayLike | None = None, *, ids: npt.ArrayLike | None = None
    ) -> Laws:
        r"""Predict the laws of points from their features and labels.

        Without labels the law is the mean over the labels that the linear model expects,
        $\psi_k(x) = \sum_y \hat p(y \mid x)\,\psi_k(x, y)$, and its uncertainty includes that of
        the label. For power laws the mean has that height at $k_\mathrm{ref}$, and the exponent
        (as any shape coordinate) is the mean weighted by $\hat p\,|\psi|$.

        Parameters
        ----------
        X
            Features, shape ``(n, d)``, in the space that the network was trained in.
        y
            Labels or quantities, shape ``(n,)``; None where they are unknown.
        ids
            Names of the points, shape ``(n,)``; positions by default.

        Returns
        -------
        Laws
            One law for each row, of status ``PREDICTED``.
        """
        features = as_features(X, None)
        check_width(features, self.shape.n_features)
        names = PointIds(np.arange(len(features)) if ids is None else np.asarray(ids))
        if y is not None:
            codes = as_codes(y, len(features), self.reader.classes)
            return self._known(features, codes, names)
        return self._unlabelled(features, names)

    def _known(self, X: FloatArray, codes: AnyArray, names: PointIds) -> Laws:
        parts = [
            self.predicted(self.reader.inputs(X[rows], codes[rows])).average()
            for rows in (slice(i, i + _ROWS) for i in range(0, max(1, len(X)), _ROWS))
        ]
        joined = (np.concatenate(columns, axis=1) for columns in zip(*parts, strict=True))
        return self.as_laws(Predicted(*joined), names)

    def _unlabelled(self, X: FloatArray, names: PointIds) -> Laws:
        """Average over the labels that the linear model expects."""
        reader = self.reader
        n = len(X)
        if reader.classes is None:
            expected, step = reader.predict(X), reader.target[1]
            labels = [expected + step * error for error in reader.errors]
            chance = np.full((len(labels), n), 1 / len(labels))
        else:
            labels = [np.full(n, code) for code in range(len(reader.classes))]
            chance = reader.predict(X).T
        laws = [self._known(X, codes, names) for codes in labels]
        k_ref = middle(self.k_range)
        coordinates = np.stack([law.family.to_local(law.params, k_ref) for law in laws])
        weight = np.repeat(chance[:, :, None], coordinates.shape[2], axis=2)
        height = np.abs([law.mean(k_ref) for law in laws])[..., None] + 1e-300
        shapes = weight[:, :, self.shape.family.n_linear :]
        shapes *= height
        shapes /= shapes.sum(axis=0)
        mean = (weight * coordinates).sum(axis=0)
        apart = coordinates - mean
        cov = np.einsum("ln,lna,lnb->nab", chance, apart, apart)
        cov += sum(c[:, None, None] * law.cov for c, law in zip(chance, laws, strict=True))
        log_s = sum(
            c * np.log(law.sigma * k_ref ** (-law.beta / 2) / np.sqrt(self.noise_share))
            for c, law in zip(chance, laws, strict=True)
        )
        beta = sum(c * law.beta for c, law in zip(chance, laws, strict=True))
        together = Predicted(mean[None], np.asarray(log_s)[None], np.asarray(beta)[None])
        return self.as_laws(together, names, cov)

    def predicted(self, inputs: Inputs) -> Predicted:
        """Return what each member predicts, in units of the loss."""
        torch = load_torch()
        with torch.no_grad():
            points = tensors(visible(self.shape, inputs), "cpu")
            outputs = local(self.shape, tensors(self.weights, "cpu"), points)
        coordinates, log_s, beta = (tensor.numpy() for tensor in outputs)
        k_ref = middle(self.k_range)
        unit = self.shape.family.scales(np.array([self.unit]), k_ref)[0]
        return Predicted(coordinates * unit, log_s + np.log(self.unit), beta)

    def as_laws(self, predicted: Predicted, names: PointIds, cov: FloatArray | None = None) -> Laws:
        """Return a prediction (of one member, or their mean) as laws."""
        k_ref = middle(self.k_range)
        (coordinates,), (log_s,), (beta,) = predicted
        n = len(coordinates)
        if cov is None:
            scale = self.shape.family.scales(np.exp(log_s), k_ref)
            cov = scale[:, :, None] * self.scatter * scale[:, None, :]
        unknown = np.full(n, np.nan)
        return Laws(
            family=self.shape.family,
            params=self.shape.family.from_local(coordinates, k_ref),
            cov=cov,
            sigma=np.sqrt(self.noise_share) * np.exp(log_s) * k_ref ** (beta / 2),
            beta=beta,
            r2=unknown,
            r2_variance=unknown.copy(),
            n_samples=np.zeros(n, dtype=np.int64),
            status=mark(n, (FitStatus.PREDICTED, np.ones(n, dtype=bool))),
            ids=names,
            k_range=self.k_range,
            attrs=self.attrs,
            diagnostics=self.diagnostics,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network to one file of arrays (NumPy's npz), whole or not at all."""
        header = {
            "schema_version": SCHEMA_VERSION,
            "what": "apiece amortized network",
            "family": plain(self.shape.family.to_json()),
            "kind": self.shape.kind,
            "n_features": self.shape.n_features,
            "n_classes": self.shape.n_classes,
            "is_regression": self.shape.is_regression,
            "width": self.shape.width,
            "unit": self.unit,
            "noise_share": self.noise_share,
            "k_range": list(self.k_range),
            "attrs": plain(self.attrs),
            "diagnostics": plain(self.diagnostics),
        }
        arrays = {f"weights.{name}": array for name, array in self.weights.items()}
        arrays |= {f"reader.{n}": a for n, a in vars(self.reader).items() if a is not None}
        text = np.frombuffer(json.dumps(header).encode("utf-8"), dtype=np.uint8)
        buffer = io.BytesIO()
        arrays_to_save: dict[str, Any] = {
            "header": text,
            "scatter": self.scatter,
            **_plain_arrays(arrays),
        }
        np.savez(buffer, **arrays_to_save)
        write_whole(Path(path), buffer.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a network that `save` wrote."""
        source = Path(path)
        if not source.is_file():
            raise StoreError(
                f"there is no network at {source}: expected a file that network.save wrote. "
                "Check the path, or train and save first."
            )
        try:
            with open(source, "rb") as bytes_, np.load(bytes_, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            header = json.loads(arrays.pop("header").tobytes())
            remedy = "Train the network again, and save it."
            check_schema(source, header["schema_version"], SCHEMA_VERSION, remedy)
            return cls._from(header, arrays)
        except (KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile, OSError) as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(
                f"{source} holds no network ({error!r}): expected a whole file that network.save "
                "wrote. Restore it from a copy, or train again."
            ) from error

    @classmethod
    def _from(cls, header: dict[str, Any], arrays: dict[str, AnyArray]) -> Self:
        def group(name: str) -> dict[str, AnyArray]:
            start = f"{name}."
            return {n[len(start) :]: a for n, a in arrays.items() if n.startswith(start)}

        shape = NetworkConfig(
            family_from_json(header["family"]),
            header["kind"],
            header["n_features"],
            header["n_classes"],
            header["is_regression"],
            header["width"],
        )
        reader: dict[str, Any] = {"classes": None, **group("reader")}
        return cls(
            shape=shape,
            reader=FeatureProbe(**reader),
            weights={name: group("weights")[name] for name in shape.arrays},
            unit=header["unit"],
            k_range=tuple(header["k_range"]),
            scatter=arrays["scatter"],
            noise_share=header["noise_share"],
            attrs=header["attrs"],
            diagnostics=header["diagnostics"],
        )


def _plain_arrays(arrays: dict[str, AnyArray]) -> dict[str, AnyArray]:
    """Turn arrays of Python objects, such as words, into arrays that need no pickle."""
    return {name: a.astype(str) if a.dtype == object else a for name, a in arrays.items()}
