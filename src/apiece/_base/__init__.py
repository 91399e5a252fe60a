"""The foundation that every package may import: types, checks, random numbers, files, progress."""
