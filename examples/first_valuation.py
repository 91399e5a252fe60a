"""A first valuation: what 456 tumours are worth to a classifier, at every dataset size."""

from sklearn.datasets import load_breast_cancer

import apiece

X, y = load_breast_cancer(return_X_y=True)
dataset = apiece.Dataset.from_arrays(X, y, standardize=True)
run = apiece.collect(
    dataset,
    model="logistic",
    sizes=(40, 300),
    samples=50,
    random_state=0,
    n_jobs=-1,
    to="runs/tumours",
)
laws = apiece.fit(run)
print(laws.summary())
print(laws.table().head(3))
print(apiece.value(laws, kind="shapley", sizes=(40, 300)).nlargest(3, "value"))
print(apiece.select(laws, take=3, at=50))
print(apiece.select(laws, take=3, at=1000))
