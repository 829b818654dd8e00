#!/bin/sh
# Stands in for `apptainer` at its command line: knows the words Hermes says to it, and refuses all others.
#
# An instance is a namespace of processes and mounts with a home and a /tmp of its own, over this machine's files. Images,
# overlays and limits are checked for their form and then ignored, except that the image `cgroup` takes no limits.

state=$0.state
mkdir -p "$state"

fatal() {
    echo "FATAL:   $*" >&2
    exit 255
}

init_of() {
    [ -f "$state/$1" ] && read -r init <"$state/$1" && [ -d "/proc/$init" ]
}

start() {
    home='' limits='' contained='' layer=''
    while [ $# -gt 2 ]; do
        case $1 in
            --containall) contained=1 ;;
            --home) home=$2; shift ;;
            --overlay) layer=$2; [ -d "$2" ] || fatal "no overlay folder $2"; shift ;;
            --writable-tmpfs) layer=memory ;;
            --cpus | --memory) limits=1; shift ;;
            *) fatal "unknown flag: $1" ;;
        esac
        shift
    done
    image=$1 name=$2
    [ -n "$contained" ] && [ -n "$layer" ] || fatal 'Hermes contains its instances, and lets them write'
    case $image in
        missing) fatal "could not open image $image: no such file or directory" ;;
        cgroup) [ -z "$limits" ] || fatal 'container creation failed: while applying cgroups config: permission denied' ;;
    esac
    ! init_of "$name" || fatal "instance $name already exists"
    # The first process takes in orphans, as that of a real instance does.
    unshare --user --map-root-user --mount --pid --fork --mount-proc sh -c "
        exec 3>'$state/$name.up'
        mount --bind '${home%:*}' '${home#*:}' && mount -t tmpfs tmpfs /tmp && echo up >&3
        exec 3>&-
        while :; do sleep 0.3; done
    " </dev/null >/dev/null 2>&1 &
    outer=$!
    for i in $(seq 200); do
        [ ! -s "$state/$name.up" ] || break
        sleep 0.05
    done
    rm "$state/$name.up" || fatal 'no namespaces here'
    read -r init rest <"/proc/$outer/task/$outer/children"
    echo "$init" >"$state/$name"
    echo "INFO:    instance started successfully" >&2
}

case "$1 $2" in
    'instance start') shift 2; start "$@" ;;
    'instance list')
        [ "$3" = --json ] || fatal 'Hermes asks for JSON'
        ! init_of "$4" || entry="{\"instance\": \"$4\", \"pid\": $init, \"img\": \"x\"}"
        echo "{\"instances\": [$entry]}"
        ;;
    'instance stop')
        init_of "$3" || fatal "no instance found with name $3"
        kill -s KILL "$init"
        rm "$state/$3"
        ;;
    'exec instance://'*)
        name=${2#instance://}
        init_of "$name" || fatal "no instance found with name $name"
        shift 2
        exec nsenter --target "$init" --user --mount --pid --preserve-credentials -- \
            env -i HOME=/root PATH=/usr/local/bin:/usr/bin:/bin "$@"
        ;;
    *) fatal "unknown command: $*" ;;
esac
