#!/bin/sh
# Puts libtokenizers.a into the user cache directory and prints that directory.
#   build.sh          build or download, then print the directory
#   build.sh --path   print the directory only
# Only tokenize/hf links it; every other package builds without cgo.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=v1.27.0
say() { echo "libtokenizers: $*" >&2; }
die() { say "$*"; exit 1; }

platform="$(go env GOOS)-$(go env GOARCH)"
case "$(go env GOOS)" in
darwin) cache=${XDG_CACHE_HOME:-$HOME/Library/Caches} ;;
*) cache=${XDG_CACHE_HOME:-$HOME/.cache} ;;
esac
dir=$cache/turnpack/libtokenizers/$version-$platform
if [ "${1:-}" = --path ] || [ -s "$dir/libtokenizers.a" ]; then
  echo "$dir"
  exit 0
fi
mkdir -p "$dir"
work=$(mktemp -d "$dir/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

build() {
  src=$(cd "$here/../.." && GOFLAGS=-mod=mod go mod download -json "github.com/daulet/tokenizers@$version" | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p')
  [ -n "$src" ] || die "the Go module github.com/daulet/tokenizers $version could not be downloaded: check the module proxy setting (go env GOPROXY)"
  mkdir -p "$work/crates"
  cp -R "$src/crates/tokenizers" "$work/crates/tokenizers"
  chmod -R u+w "$work"
  printf '[workspace]\nresolver = "2"\nmembers = ["crates/tokenizers"]\n' >"$work/Cargo.toml"
  cp "$here/Cargo.lock" "$work/Cargo.lock"
  # The published crate replaces a git dependency; benches need crates that the library does not.
  sed -e 's|^tiktoken-rs = .*|tiktoken-rs = "0.9"|' -e '/^\[dev-dependencies\]/,$d' \
    "$src/crates/tokenizers/Cargo.toml" >"$work/crates/tokenizers/Cargo.toml"
  say "building $version with cargo (about a minute, once)"
  (cd "$work" && cargo build --release --locked --quiet >&2) || return 1
  mv "$work/target/release/libtokenizers_ffi.a" "$dir/libtokenizers.a"
}

download() {
  want=${LIBTOKENIZERS_SHA256:-$(sed -n "s/^\([0-9a-f]\{64\}\)  $platform\$/\1/p" "$here/digests.txt")}
  [ -n "$want" ] || die "cargo is not installed and no digest is pinned for $platform in internal/libtokenizers/digests.txt.
  Either install Rust (rustup.rs) and run make again, or set LIBTOKENIZERS_SHA256 to the digest of the upstream release archive libtokenizers.$platform.tar.gz of $version."
  url=https://github.com/daulet/tokenizers/releases/download/$version/libtokenizers.$platform.tar.gz
  say "downloading $url"
  curl -fsSL --retry 2 -o "$work/lib.tar.gz" "$url" || die "the download failed.
  Either install Rust (rustup.rs) and run make again, or fetch $url by hand and unpack libtokenizers.a into $dir."
  got=$(sha256sum "$work/lib.tar.gz" 2>/dev/null || shasum -a 256 "$work/lib.tar.gz")
  got=${got%% *}
  [ "$got" = "$want" ] || die "the archive has sha256 $got, expected $want: not used"
  tar -xzf "$work/lib.tar.gz" -C "$work" libtokenizers.a
  mv "$work/libtokenizers.a" "$dir/libtokenizers.a"
}

if command -v cargo >/dev/null 2>&1; then
  build || die "cargo could not build the library: see its message above. With cargo out of PATH the upstream release is downloaded instead."
else
  download
fi
echo "$dir"
