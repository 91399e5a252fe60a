#!/bin/sh
# Check the types of the report's scripts: by the tsc that is installed (or named by TSC), else by one that npm fetches.
# Where neither is possible it says loudly that nothing was checked, and does not fail.
project=$(dirname "$0")/../tests/unit/reporting/page
tsc=${TSC:-$(command -v tsc)}
if [ -z "$tsc" ] && command -v npx >/dev/null; then
    tsc="npx --yes --package typescript@5.9 tsc"
    $tsc --version >/dev/null 2>&1 || tsc=
fi
if [ -z "$tsc" ]; then
    echo "WARNING: the report's scripts were NOT type-checked: there is no tsc, and npm cannot fetch it." >&2
    echo "WARNING: install it with: npm install -g typescript" >&2
    exit 0
fi
$tsc -p "$project" && echo "types of the report's scripts: checked by TypeScript $($tsc --version | sed 's/Version //')"
