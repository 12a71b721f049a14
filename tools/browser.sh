#!/usr/bin/env bash
# Make sure there is a chromium for the tests of the page: Debian's, where this user may install it.
# Says one line and succeeds if it cannot; the tests then say so too, and fail under CI.
set -euo pipefail

for name in chromium chromium-browser google-chrome-stable google-chrome; do
  if command -v "$name" >/dev/null; then exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "Installing chromium for the tests of the page; this takes up to two minutes, once." >&2
  if said=$(apt-get update 2>&1 && DEBIAN_FRONTEND=noninteractive \
    apt-get install --yes --no-install-recommends chromium fonts-dejavu-core 2>&1); then
    exit 0
  fi
  printf '%s\n' "$said" | tail -n 3 >&2
fi
echo "browser: there is no chromium, and it could not be installed; install it (on Debian, as root: apt-get install chromium), or the tests of the page are skipped" >&2
