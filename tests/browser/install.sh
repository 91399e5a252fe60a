#!/bin/sh
# Install Chromium and its driver for the browser tests where that is possible (Debian, as root);
# elsewhere say what is missing. The tests themselves skip without a browser, and fail in CI.
found() { command -v "$1" >/dev/null 2>&1; }

if { found chromium || found chromium-browser || found google-chrome; } && found chromedriver; then
  exit 0
fi
if [ "$(id -u)" = 0 ] && found apt-get; then
  echo "installing chromium and chromium-driver for the browser tests"
  apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null 2>&1 ||
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver; } >/dev/null 2>&1 ||
    echo "chromium could not be installed: the browser tests cannot run"
else
  echo "the browser tests need chromium and chromedriver on the PATH, which are missing here;"
  echo "on Debian: sudo apt-get install chromium chromium-driver"
fi
exit 0
