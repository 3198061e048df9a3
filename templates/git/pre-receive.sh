# >>> khms >>> audits what a push brings into a base; `khms hook uninstall git --server` takes these lines out
khms_refs=$(cat)
(
  run_khms() { @KHMS@ "$@"; }
  if ! @THERE@; then
    printf '%s\n' "khms: nothing was checked, khms is gone from this server: install it again, then khms hook install git --server (or delete the lines from >>> khms to <<< khms in $0)" >&2
    exit 1
  fi
  printf '%s\n' "$khms_refs" | run_khms --quiet audit --receive && exit 0
  printf '%s\n' "khms: this push is refused, and nothing of it was taken" >&2
  exit 1
) || exit 1
exec <<KHMS_REFS
$khms_refs
KHMS_REFS
# <<< khms <<<
