#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# A client of ibmgrd in curl and jq, from docs/reference/openapi.json alone.
#
#   ibmgr.sh SOCKET get LINK KNOB            one value
#   ibmgr.sh SOCKET set LINK KNOB VALUE      one knob, unless somebody changes the interface meanwhile
#   ibmgr.sh SOCKET plan FILE                what applying a file would do
#   ibmgr.sh SOCKET apply FILE SECONDS       applies it, to be confirmed within so many seconds
#   ibmgr.sh SOCKET confirm | rollback       ends that
#   ibmgr.sh SOCKET links | status | export  what there is
set -eu

socket=$1
verb=$2
shift 2

ask() {
    curl --silent --show-error --fail-with-body --unix-socket "$socket" "$@"
}

post() {
    path=$1
    shift
    ask --json @- "$@" "http://localhost$path"
}

declare_file() {
    jq --null-input --arg file "$1" --rawfile text "$1" --argjson more "$2" \
        '{sources: [{file: $file, text: $text}]} + $more'
}

case $verb in
links) ask http://localhost/v1/links | jq --raw-output '.links[].name' ;;
get) ask "http://localhost/v1/links/$1?knobs=$2" | jq --raw-output --arg knob "$2" '.knobs[$knob].value' ;;
set)
    # The tag of what was seen keeps another's change from being overwritten.
    tag=$(ask --dump-header - --output /dev/null "http://localhost/v1/links/$1" | tr -d '\r' | sed -n 's/^[Ee][Tt][Aa][Gg]: //p')
    jq --null-input --arg knob "$2" --arg value "$3" '{knobs: {($knob): $value}}' |
        post "/v1/links/$1/knobs" --request PATCH --header "If-Match: $tag" |
        jq --raw-output '.knobs[].outcome'
    ;;
plan) declare_file "$1" '{}' | post /v1/plan | jq . ;;
apply)
    declare_file "$1" "{\"confirm-within-seconds\": $2}" | post /v1/apply | jq --raw-output '.end'
    ;;
confirm | rollback)
    jq --null-input --arg deed "$verb" '{do: $deed}' | post /v1/checkpoint | jq --raw-output '.state'
    ;;
status) ask http://localhost/v1/status | jq --raw-output '.ok' ;;
export) ask http://localhost/v1/export | jq --raw-output '.toml' ;;
*)
    echo "ibmgr.sh: there is no verb $verb" >&2
    exit 2
    ;;
esac
