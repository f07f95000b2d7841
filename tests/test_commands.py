"""Commands of a shell: what is plain is understood, anything else says nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otel_context_ledger.correctness import accesses, commands
from otel_context_ledger.correctness.commands import ALL, Part, Told

FORMS = accesses.shipped().forms
ONE_FILE: dict[str, commands.Lines] = {
    "cat f": ALL, "/bin/cat -n f": ALL, "cat -- f": ALL, "nl -ba -w3 -s': ' f": ALL, "cat\t'f'\n": ALL, 'cat "f"': ALL,
    "sed -n 1,50p f": (1, 50), "sed -n '1,$p' f": ALL, "sed -n '5p' f": (5, 5), "sed -ne 7,9p f": (7, 9),
    "head f": (1, 10), "head -n 5 f": (1, 5), "head -n5 f": (1, 5), "head -20 f": (1, 20), "head --lines=3 f": (1, 3),
    "tail f": (-10, None), "tail -n 20 f": (-20, None), "tail -n +5 f": (5, None),
    "nl -ba f | sed -n '10,20p'": (10, 20), "tail -n +5 f | head -3": (5, 7), "cat f | tail -5": (-5, None),
    "head -50 f | tail -10": (41, 50), "sed -n 10,20p f | sed -n 3,4p": (12, 13), "head -9 f | cat": (1, 9),
    "bash -lc 'head -n 2 f'": (1, 2), "sed -n 10,20p f | sed -n '8,40p'": (17, 20),
}  # fmt: skip
NOTHING = [
    "", "cat", "cat $F", 'cat "$F"', "cat `which f`", "cat $(ls)", "cat *.py", "cat f?", "cat [f]", "cat {f,g}",
    "cat ~/f", "cat \\f", "cat f > g", "cat f >> g", "cat < f", "cat f 2>/dev/null", "cat f &", "cat f & cat g",
    "cat f || true", "(cat f)", "FOO=1 cat f", "sudo cat f", "cat f #g", "cat - f", "cat f |", "cat f && rm -r f",
    "cat f; git checkout g", "cat f | python g", "cat f | grep g", "cat f | head -c 5", "cat f g | head -3",
    "tail -f f", "head -n -5 f", "tail -5 f | head -2", "sed -n 's/a/b/p' f", "sed 1,5p f", "sed -n 1,5p f g",
    "sed -n 0,5p f", "sed -n 9,5p f", "sed -n '1,5p;w g' f", "sed -i '' s/a/b/ f", "cat f | sed -i s/a/b/ g",
    "cat f;; cat g", "; cat f", "cat <<END\nf\nEND", "cd g; cat f", "echo f", "ls f", "if true; then cat f; fi",
    "cat f" + " " * commands.MAX_COMMAND, "bash -c 'cat $F'", "cat 'f", "eval 'cat f'", "cat\0f", "printf -v f",
    "head -n x f", "head -n f", "tail -n +x f",
]  # fmt: skip


@pytest.mark.parametrize("command", ONE_FILE)
def test_a_plain_read_of_one_file(command: str) -> None:
    """It prints these lines of that file, and nothing else."""
    assert commands.told(command, FORMS) == Told((Part("f", ONE_FILE[command]),), None, True)


@pytest.mark.parametrize("command", NOTHING)
def test_what_is_not_plain_says_nothing(command: str) -> None:
    """Of a command that may do anything else than reading nothing is told."""
    assert commands.told(command, FORMS) is None


@pytest.mark.parametrize("command", [one for one in ONE_FILE if "nl " not in one and "cat -n" not in one])
def test_a_real_shell_prints_what_is_told(command: str, tmp_path: Path) -> None:
    """The lines are those that the programs print."""
    lines = [f"line {number}\n" for number in range(1, 101)]
    (tmp_path / "f").write_text("".join(lines))
    ran = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
    first, last = ONE_FILE[command]
    start = first - 1 if first > 0 else len(lines) + first
    assert ran.stdout == "".join(lines[start:last])


def test_several_files_and_places() -> None:
    """Several reads are told together, from the directory that the command goes to first; what else it prints is not
    told apart."""
    both = Told((Part("a"), Part("b", (1, 3))), "/x y", False)
    assert commands.told("cd '/x y' && cat a && head -3 b", FORMS) == both
    assert commands.told("ls -la && cat a", FORMS) == Told((Part("a"),), None, False)
    assert commands.told(["cat", "a$b *"], FORMS) == Told((Part("a$b *"),), None, True)


def test_what_is_written() -> None:
    """A file that is written from a text of the command's own, in either order, and edits in place."""
    whole = Told((Part("f", ALL, True, "x\ny\n"),), None, True)
    assert commands.told("cat > f <<'END'\nx\ny\nEND\n", FORMS) == whole
    assert commands.told('cat <<"END" > f\nx\ny\nEND', FORMS) == whole
    assert commands.told("cat > f <<'END'\nEND", FORMS) == Told((Part("f", ALL, True, ""),), None, True)
    edit = (Part("f", ALL, True), Part("g", ALL, True))
    assert commands.told("mv f g", FORMS) == commands.told("rm -f f && rm g", FORMS) == Told(edit, None, False)
    assert commands.told("sed -i.bak -e 's/a/b/' f g", FORMS) == Told(edit, None, False)


@pytest.mark.parametrize("more", ["\nrm f", "\ny\nEND", " && rm f"])
def test_more_than_a_text_says_nothing(more: str) -> None:
    """What comes after the text may do anything."""
    assert commands.told(f"cat > f <<'END'\nx\nEND{more}", FORMS) is None


def test_where_a_shell_goes() -> None:
    """A shell that may have gone elsewhere is said to have moved; back to where it began is no move."""
    told = {"ls": False, "cd sub && ls": True, "ls; pushd x": True, "cat abcd.py": False, "cd /home && ls": False}
    assert {command: commands.moves(command, FORMS, "/home") for command in told} == told


def test_patches() -> None:
    """A patch is what the command's own words apply, not what they speak of."""
    text = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n*** End Patch\nEOF"
    assert commands.patch(f"cd sub && {text}", FORMS) == (f"cd sub && {text}", "sub")
    assert commands.patch(["apply_patch", "*** Begin Patch"], FORMS) == ("*** Begin Patch", None)
    assert commands.patch(f"cat > note <<'X'\n{text}\nX", FORMS) is None


@settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(st.sampled_from("cat f;&|<>'\"\\$\n-ns1,p{}*~()#"), max_size=40))
def test_nonsense_raises_nothing(command: str) -> None:
    """Whatever a command holds, it is told or not."""
    found = commands.told(f"cat {command}", FORMS)
    assert found is None or all(part.path for part in found.parts)
