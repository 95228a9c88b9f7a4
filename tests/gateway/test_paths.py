"""The path map is exact, two-way and touches nothing that it need not."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.gateway.path_mapping.paths import PathMap

HOST, BOX = "/home/ada/project", "/home/agent/workspace"
MAP = PathMap([(HOST, BOX)])
NESTED = PathMap([("/data", "/mnt"), ("/data/deep/er", "/deep"), ("/", "/host")])
WINDOWS = PathMap([("C:\\Users\\Ada\\my project", "/workspace")])

SAME_ON_BOTH_SIDES = [
    "/home/ada/projects",
    "/home/ada/project2/x",
    "/home/ada",
    "/",
    "",
    "home/ada/project",
    "./x",
    "--root=/home/ada/project",
    "see /home/ada/project/x",
    " /home/ada/project",
    "/home/ada/project/../other",
    "/home/ada/project/a/../../other",
    "/HOME/ada/project",
    "C:\\home\\ada\\project",
]


@pytest.mark.rule("G-150")
@pytest.mark.parametrize(
    ("host", "box"),
    [
        (HOST, BOX),
        (f"{HOST}/a.txt", f"{BOX}/a.txt"),
        (f"{HOST}/with space/ünïcode/ ", f"{BOX}/with space/ünïcode/ "),
        (f"{HOST}/back\\slash", f"{BOX}/back\\slash"),
    ],
)
def test_paths_at_and_below_the_root_are_translated_both_ways(host: str, box: str) -> None:
    assert MAP.to_box.path(host) == box
    assert MAP.to_host.path(box) == host


@pytest.mark.rule("G-150")
@pytest.mark.parametrize("value", SAME_ON_BOTH_SIDES)
def test_everything_else_comes_back_as_it_is(value: str) -> None:
    assert MAP.to_box.path(value) is value
    assert MAP.to_host.path(value) is value


@pytest.mark.rule("G-150")
@pytest.mark.parametrize(
    ("host", "box"),
    [
        ("/data/deep/er/x", "/deep/x"),
        ("/data/deep/x", "/mnt/deep/x"),
        ("/data/deep/era", "/mnt/deep/era"),
        ("/dat", "/host/dat"),
        ("/dat/.x", "/host/dat/.x"),
    ],
)
def test_the_longest_root_wins(host: str, box: str) -> None:
    assert NESTED.to_box.path(host) == box
    assert NESTED.to_host.path(box) == host


@pytest.mark.rule("G-150")
@pytest.mark.parametrize(
    ("host", "box"),
    [
        (f"{HOST}/", BOX),
        (f"{HOST}/a//b/./c/", f"{BOX}/a/b/c"),
        (f"{HOST}/a/../b", f"{BOX}/b"),
        ("/home/ada/other/../project/x", f"{BOX}/x"),
        ("//home/ada/project/.", BOX),
    ],
)
def test_a_path_is_normalised_on_its_way_in_and_comes_back_as_it_was_spelled(host: str, box: str) -> None:
    paths = PathMap([(HOST, BOX)])
    assert paths.to_box.path(host) == box
    assert paths.to_host.path(box) == host
    assert paths.to_host.path(f"{box}/below") == f"{HOST}{box[len(BOX) :]}/below"
    assert paths.to_box.path(HOST + box[len(BOX) :]) == box
    assert paths.to_host.path(box) == HOST + box[len(BOX) :]


def test_what_a_box_says_is_not_normalised() -> None:
    assert MAP.to_host.path(f"{BOX}/a/../b") == f"{HOST}/a/../b"


def test_only_so_many_spellings_are_remembered() -> None:
    paths = PathMap([(HOST, BOX)])
    for number in range(1000):
        paths.to_box.path(f"{HOST}/./{number}")
    assert len(paths.to_box.spellings) == 512
    assert paths.to_host.path(f"{BOX}/999") == f"{HOST}/./999"
    assert paths.to_host.path(f"{BOX}/0") == f"{HOST}/0"


def test_a_folder_is_called_as_the_client_spelled_it() -> None:
    spelled = PathMap([("/home/./ada/project", BOX), (HOST, BOX)])
    assert spelled.changes
    assert spelled.to_box.path(f"{HOST}/x") == f"{BOX}/x"
    assert spelled.to_host.path(f"{BOX}/x") == "/home/./ada/project/x"


def test_nothing_relative_is_below_the_root_folder() -> None:
    for value in ("", "a", "./a", "C:\\a"):
        assert NESTED.to_box.path(value) is value


def test_a_symlinked_workspace_is_known_by_both_names_and_called_by_the_clients() -> None:
    linked = PathMap([("/home/ada/link", "/workspace"), ("/mnt/disk/project", "/workspace")])
    assert linked.to_box.path("/home/ada/link/x") == "/workspace/x"
    assert linked.to_box.path("/mnt/disk/project/x") == "/workspace/x"
    assert linked.to_host.path("/workspace/x") == "/home/ada/link/x"


def test_a_map_knows_when_it_changes_nothing() -> None:
    assert MAP.changes
    assert not PathMap([("/same", "/same/"), ("/other", "/other")]).changes


@pytest.mark.parametrize(
    ("host", "box"),
    [
        (f"file://{HOST}", f"file://{BOX}"),
        (f"file://{HOST}/a%20b/%C3%BC%2Fx.txt", f"file://{BOX}/a%20b/%C3%BC%2Fx.txt"),
        (f"file://localhost{HOST}/a", f"file://localhost{BOX}/a"),
        (f"file://{HOST}/a.py?x=1#L10", f"file://{BOX}/a.py?x=1#L10"),
        (f"file://{HOST}#top", f"file://{BOX}#top"),
        (f"file://{HOST}/A%2fB", f"file://{BOX}/A%2fB"),
    ],
)
def test_file_uris_are_translated_with_their_escapes_kept(host: str, box: str) -> None:
    assert MAP.to_box.uri(host) == box
    assert MAP.to_host.uri(box) == host


@pytest.mark.parametrize(
    ("host", "box"),
    [
        (f"file:{HOST}/a", f"file:{BOX}/a"),
        (f"file:{HOST}", f"file:{BOX}"),
        (f"file://LOCALHOST{HOST}/a", f"file://LOCALHOST{BOX}/a"),
        (f"file://LocalHost{HOST}/a%20b?x#y", f"file://LocalHost{BOX}/a%20b?x#y"),
        (f"FILE://{HOST}/a", f"FILE://{BOX}/a"),
        (f"File:{HOST}/a", f"File:{BOX}/a"),
    ],
)
def test_every_spelling_of_a_file_uri_is_one(host: str, box: str) -> None:
    assert MAP.to_box.uri(host) == MAP.to_box.value(host) == box
    assert MAP.to_host.uri(box) == MAP.to_host.value(box) == host


@pytest.mark.parametrize(
    ("odd", "box"),
    [
        ("//home/ada/project/a", f"{BOX}/a"),
        ("/home//ada/./project", BOX),
        ("/./home/ada/project//a/./b", f"{BOX}/a/b"),
        ("file:////home/ada/project/a", f"file://{BOX}/a"),
        ("file:///home/./ada//project/a//b", f"file://{BOX}/a//b"),
        ("file:///home/%2E/ada/projec%74/a", f"file://{BOX}/a"),
    ],
)
def test_a_root_is_recognised_with_nothing_between_its_components(odd: str, box: str) -> None:
    assert MAP.to_box.value(odd) == box


def test_a_path_with_nothing_in_it_is_still_compared_by_components() -> None:
    for value in (
        "//home/ada/projects",
        "/home//ada/project2/x",
        "/home//ada",
        "//",
        "/./.",
        "//home/ada/project/../x",
    ):
        assert MAP.to_box.value(value) is value


PROJECT = PathMap([("/home/ada/my project", "/workspace"), ("/srv/data", "/data")])


@pytest.mark.parametrize(
    ("host", "box"),
    [
        ("File not found: /home/ada/my project/a b.txt", "File not found: /workspace/a b.txt"),
        ("'/home/ada/my project' is a folder", "'/workspace' is a folder"),
        ("in /home/ada/my project.", "in /workspace."),
        ("ENOENT: no such file, open '/srv/data/x'", "ENOENT: no such file, open '/data/x'"),
        ("/srv/data/a.py:3: see /srv/data/b", "/data/a.py:3: see /data/b"),
        ("at=/srv/data,(/srv/data) [/srv/data/x]", "at=/data,(/data) [/data/x]"),
        ("<file:///home/ada/my%20project/x>, ok", "<file:///workspace/x>, ok"),
        ("file:/srv/data/x and FILE://LOCALHOST/srv/data.", "file:/data/x and FILE://LOCALHOST/data."),
        ("/home/ada/my project", "/workspace"),
        ('{"path":"/srv/data/x"}', '{"path":"/data/x"}'),
    ],
)
def test_paths_in_prose_are_translated_both_ways(host: str, box: str) -> None:
    assert PROJECT.to_box.text(host) == box
    assert PROJECT.to_host.text(box) == host


@pytest.mark.parametrize(
    "value",
    [
        "/srv/database and /srv/data2/x, /srv/data.txt, /srv/data-old",
        "/mnt/srv/data/x",
        "a/srv/data",
        "../srv/data",
        "/srv/data/../other",
        "file://elsewhere/srv/data/x",
        "https://example.com/srv/data",
        "nothing at all",
        "",
    ],
)
def test_prose_without_a_path_below_a_root_stays(value: str) -> None:
    assert PROJECT.to_box.text(value) == value


def test_a_path_in_prose_is_translated_once() -> None:
    nested = PathMap([("/srv", "/srv/box")])
    assert nested.to_box.text("/srv/a file:///srv/b") == "/srv/box/a file:///srv/box/b"
    assert PathMap([("/", "/host")]).to_box.text("open /etc/x or a/b") == "open /host/etc/x or a/b"
    assert WINDOWS.to_box.text("in c:/users/ada/My Project\\src\\a.py: no") == "in /workspace/src/a.py: no"


def test_a_root_is_recognised_however_its_uri_is_escaped() -> None:
    spaced = PathMap([("/home/ada/my project", "/workspace")])
    assert spaced.to_box.uri("file:///home/ada/my%20project/a%20b") == "file:///workspace/a%20b"
    assert spaced.to_box.uri("file:///home/%61da/my project/a b") == "file:///workspace/a b"
    assert spaced.to_host.uri("file:///workspace/a") == "file:///home/ada/my%20project/a"


@pytest.mark.parametrize(
    "value",
    [
        "https://example.com/home/ada/project",
        "file://elsewhere/home/ada/project/x",
        "file:///home/ada/projects/x",
        "file:///home/ada/project/../x",
        "file:///home/ada/project/%2E%2E/x",
        "file:///home/ada%2Fproject/x",
        "file://",
        f"{HOST}/x",
        "zed:///agent/selection?path=/home/ada/project",
    ],
)
def test_other_uris_come_back_as_they_are(value: str) -> None:
    assert MAP.to_box.uri(value) is value


@pytest.mark.parametrize(
    ("host", "box"),
    [
        ("C:\\Users\\Ada\\my project", "/workspace"),
        ("C:\\Users\\Ada\\my project\\src\\a.py", "/workspace/src/a.py"),
    ],
)
def test_windows_paths_are_translated_both_ways(host: str, box: str) -> None:
    assert WINDOWS.to_box.path(host) == box
    assert WINDOWS.to_host.path(box) == host


@pytest.mark.parametrize("host", ["c:/users/ada/My Project/src/a.py", "C:\\Users/Ada\\my project/src\\a.py"])
def test_windows_paths_are_recognised_in_any_spelling(host: str) -> None:
    assert WINDOWS.to_box.path(host) == "/workspace/src/a.py"


def test_windows_paths_in_uris() -> None:
    uri = "file:///C:/Users/Ada/my%20project/src/a.py"
    assert WINDOWS.to_box.uri(uri) == "file:///workspace/src/a.py"
    assert WINDOWS.to_host.uri("file:///workspace/src/a.py") == uri
    assert WINDOWS.to_box.uri("file:///c%3A/Users/Ada/my%20project/a") == "file:///workspace/a"
    assert WINDOWS.to_box.uri("file:///D:/Users/Ada/my%20project/a").startswith("file:///D:")


part = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: text not in (".", "..")
)
absolute = st.lists(part, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))
below = st.lists(part, max_size=4).map(lambda parts: "".join("/" + each for each in parts))


@pytest.mark.rule("G-150")
@given(host=absolute, box=absolute, rest=below)
def test_there_and_back_is_the_identity(host: str, box: str, rest: str) -> None:
    paths = PathMap([(host, box)])
    assert paths.to_box.path(host + rest) == box + rest
    assert paths.to_host.path(paths.to_box.path(host + rest)) == host + rest
    assert paths.to_box.path(paths.to_host.path(box + rest)) == box + rest


@given(host=absolute, box=absolute, rest=below, safe=st.sampled_from(["/", "/~!$&'()*+,;=:@", "/ü"]))
def test_there_and_back_is_the_identity_for_uris(host: str, box: str, rest: str, safe: str) -> None:
    paths = PathMap([(host, box)])
    uri = "file://" + quote(host, safe="/!$&'()*+,;=:@~-._") + quote(rest, safe=safe)
    assert paths.to_host.uri(paths.to_box.uri(uri)) == uri


@given(roots=st.lists(st.tuples(absolute, absolute), min_size=1, max_size=4), value=absolute)
def test_what_is_below_no_root_is_never_touched(roots: list[tuple[str, str]], value: str) -> None:
    paths = PathMap(roots)
    if not any((value + "/").startswith(host.rstrip("/") + "/") for host, _ in roots):
        assert paths.to_box.path(value) is value


@given(value=st.text())
def test_any_text_is_survived(value: str) -> None:
    for paths in (MAP, NESTED, WINDOWS):
        for translation in (paths.to_box, paths.to_host):
            translation.path(value)
            translation.uri(value)
            translation.uri("file://" + value)
            translation.value("file:" + value)
            translation.text(value)
            translation.text(f"file:{value} /home/ada/project{value} /mnt/{value}")
