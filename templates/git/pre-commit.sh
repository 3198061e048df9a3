# >>> khms >>> checks what a commit brings into the base; `khms hook uninstall git` takes these lines out
(
  [ -z "${KHMS_IN_GIT_HOOK-}" ] || exit 0 # khms itself commits, and has checked
  run_khms() { @KHMS@ "$@"; }
  refused='' told=''
  # what could be a second base beside one of these: each of them is asked about it
  second=$(GIT_LITERAL_PATHSPECS=0 git diff --cached --name-only --no-renames --diff-filter=AT --ignore-submodules=dirty -- \
    ':(top,icase,glob)**/khms.toml' ':(top,icase,glob)**/memory/know/**' ':(top,icase,glob)**/.memory')
  for base in @BASES@; do
    if git --literal-pathspecs diff --cached --quiet --no-ext-diff --ignore-submodules=dirty -- "$base"; then
      [ -n "$second" ] || continue
    fi
    if ! @THERE@; then
      told="nothing was checked, khms is gone from here: install it again, then khms hook install git"
      told="$told (or delete the lines from >>> khms to <<< khms in $0)"
      refused=1
      break
    fi
    run_khms --quiet --root "$base" lint --staged || refused=1
    run_khms --quiet --root "$base" audit --staged || refused=1
  done
  [ -n "$refused" ] || exit 0
  printf '%s\n' "khms: ${told:-this commit is refused: mend what is named above}; to commit all the same: git commit --no-verify" >&2
  exit 1
) || exit 1
# <<< khms <<<
