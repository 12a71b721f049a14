#!/usr/bin/env bash
# Provide the programs that the tests run and PyPI does not carry: chromium, nats-server, mosquitto,
# Caddy, Java. Those that are missing come from Debian's packages, unpacked into .system: nothing is
# installed, no service is started, and root is not needed. Only chromium, which needs more than
# its own files, is installed, if this user may do so.
# If that fails, it prints one line and exits with 0; the tests then say so too, and fail under CI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root=$PWD/.system
links=$root/bin

have() {
  local name
  for name in "$@"; do
    if [ -x "$links/$name" ] || command -v "$name" >/dev/null; then return 0; fi
  done
  return 1
}

give_up() {
  echo "system: there is no $1, and it could not be fetched; install it (on Debian, as root: apt-get install $1), or the tests that need it are skipped" >&2
}

# Run apt-get with lists and archives of its own, so that any user may call it.
apt_here() {
  local state=$root/apt
  mkdir -p "$state/lists/partial" "$state/archives/partial"
  apt-get -o Dir::State::lists="$state/lists" -o Dir::Cache="$state" \
    -o APT::Sandbox::User="$(id -un)" "$@"
}

# Fetch a program from Debian, with the packages of its libraries, and write a script that runs it.
fetch() {
  local name=$1 program=$2 said
  shift 2
  have "$name" && return
  echo "Fetching $name for the tests, once." >&2
  if ! command -v apt-get >/dev/null || ! said=$(unpack "$name" "$program" "$@" 2>&1); then
    printf '%s\n' "${said:-}" | tail -n 3 >&2
    give_up "$1"
  fi
}

unpack() {
  local name=$1 program=$2
  shift 2
  set -e
  [ -d "$root/apt/lists/partial" ] && [ -n "$(ls "$root"/apt/lists/*Packages* 2>/dev/null)" ] ||
    apt_here update
  mkdir -p "$root/debs" "$links"
  (cd "$root/debs" && apt_here download "$@")
  local one
  for one in "$@"; do dpkg -x "$root/debs/${one}"_*.deb "$root"; done
  # Packages link to each other by absolute paths; here their root is .system.
  find "$root/usr" -type l -lname '/etc/*' -print0 | while IFS= read -r -d '' one; do
    ln -sfn "$root$(readlink "$one")" "$one"
  done
  program=$(echo "$root"/$program)
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$root/usr/lib/$(uname -m)-linux-gnu" \
    "$program" >"$links/$name"
  chmod +x "$links/$name"
}

# Install a package as root; return 1, with the end of what apt-get said, if that cannot be.
install() {
  local said
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  said=$(DEBIAN_FRONTEND=noninteractive \
    apt-get install --yes --no-install-recommends "$@" 2>&1) && return
  printf '%s\n' "$said" | tail -n 3 >&2
  return 1
}

# The whole browser runs extensions; what is only its engine takes half the processor time.
browser() {
  local whole="chromium chromium-browser google-chrome-stable google-chrome"
  if ! have $whole; then
    echo "Installing chromium for the tests of the page; this takes up to two minutes, once." >&2
    [ "$(id -u)" = 0 ] && apt-get update >/dev/null 2>&1
    install chromium chromium-headless-shell fonts-dejavu-core ||
      install chromium fonts-dejavu-core || give_up chromium
  fi
}

browser
fetch nats-server usr/sbin/nats-server nats-server
fetch mosquitto usr/sbin/mosquitto mosquitto libwrap0 libdlt2 libcjson1
fetch caddy usr/bin/caddy caddy
fetch java 'usr/lib/jvm/java-17-openjdk-*/bin/java' openjdk-17-jre-headless
