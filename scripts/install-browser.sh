#!/bin/sh
# A Chromium for the tests of the page: the one that is there, else the system's package, else playwright's own.
# usage: install-browser.sh VENV_BIN
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    command -v "$name" > /dev/null 2>&1 && exit 0
done
if command -v apt-get > /dev/null 2>&1; then
    as_root=""
    [ "$(id -u)" = 0 ] || as_root="sudo -n"
    echo "installing chromium for the tests of the page"
    $as_root apt-get update -qq && $as_root apt-get install -y -qq chromium > /dev/null 2>&1 && exit 0
fi
"$1/python" -m playwright install chromium > /dev/null 2>&1 && exit 0
echo "no Chromium found and none could be installed: the tests of the page will say so" >&2
exit 0
