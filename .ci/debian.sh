# Systems of Debian's releases, for scripts of this folder to source. Needs debootstrap and
# root.

certificates=/etc/ssl/certs/ca-certificates.crt

# debian_system FOLDER RELEASE PACKAGES: the release with these packages and little else.
# It is made once.
debian_system() {
    # debootstrap's last act is to remove its own folder there.
    if [ ! -d "$1" ] || [ -d "$1/debootstrap" ]; then
        debootstrap --variant=minbase --include="$3" "$2" "$1"
    fi
    # What this machine trusts beyond Debian's.
    mkdir -p "$1/${certificates%/*}"
    cp -L "$certificates" "$1$certificates"
}

# in_debian FOLDER COMMAND...: in the system's own environment, with limits on workers and
# threads that hold here, and the corpora if they are here. The command may begin with
# VARIABLE=VALUE. Its mounts, and processes that it left, end with it.
in_debian() {
    local system=$1 corpora limit variables=(
        HOME=/root LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
        PIP_CERT=$certificates PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
        CI=true
    )
    for limit in PYTEST_XDIST_AUTO_NUM_WORKERS OMP_NUM_THREADS OPENBLAS_NUM_THREADS; do
        [ -z "${!limit-}" ] || variables+=("$limit=${!limit}")
    done
    corpora=$(realpath -m "${NPLM_DATA:-../shared/data}")
    [ ! -d "$corpora" ] || variables+=(NPLM_DATA=/corpora)
    mkdir -p "$system/corpora"
    unshare --mount --pid --fork --kill-child bash -euc '
        mount -t proc proc "$0/proc"
        mount --rbind /dev "$0/dev"
        mount --rbind /sys "$0/sys"
        [ ! -d "$1" ] || mount --bind "$1" "$0/corpora"
        exec chroot "$0" env -i "${@:2}"' "$system" "$corpora" "${variables[@]}" "${@:2}"
}
