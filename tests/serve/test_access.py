"""`advisor serve` for other machines: only on request, and only to those who have the token."""

from __future__ import annotations

import http.client

import pytest

from advisor.basics.errors import UsageError
from advisor.cli.main import main

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from fake_reports import healthy
from serving import serving

from advisor.render import render
from advisor.serve.access import COOKIE, is_loopback, make_token
from advisor.serve.app import build_application, serve

TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """host:port of a server with a token."""
    root = tmp_path_factory.mktemp("runs")
    (root / "a.json").write_text(render(healthy(), "json"), encoding="utf-8")
    with serving(build_application(root, token=TOKEN)) as where:
        yield where


def ask(address, path, **headers):
    """Status, text and headers of an answer."""
    connection = http.client.HTTPConnection(*address, timeout=10)
    try:
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), {k.lower(): v for k, v in answer.getheaders()}
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("path", "headers"),
    [("/", {}), ("/?token=", {}), ("/?token=wrong", {}), ("/run/x", {}), ("/", {"Cookie": f"{COOKIE}=wrong"}),
     ("/", {"Cookie": "\x01=;;;"}), ("/", {"Authorization": "Bearer wrong"}), ("/", {"Authorization": TOKEN}),
     ("/?Token=" + TOKEN, {}), ("/?token=" + TOKEN[:-1], {}), ("/?token=%ff%fe", {})],
)  # fmt: skip
def test_nobody_reads_without_the_token(address, path, headers):
    """Not with a wrong, shortened or empty one either; the refusal tells nothing of the reports."""
    status, text, found = ask(address, path, **headers)
    assert status == 401 and "a.json" not in text
    assert found["x-frame-options"] == "DENY"


def test_the_token_opens_and_leaves_the_address(address):
    """From the printed address to a cookie that scripts and foreign pages do not see."""
    status, _, headers = ask(address, f"/?q=a&token={TOKEN}")
    assert status == 303 and headers["location"] == "/?q=a"
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    status, text, _ = ask(address, "/", Cookie=cookie.partition(";")[0])
    assert status == 200 and "a.json" in text
    assert ask(address, "/", Authorization=f"Bearer {TOKEN}")[0] == 200


def test_the_way_back_leads_nowhere_else(address):
    """An address that begins with two slashes is no other machine, nor one that does once a browser has dropped a tab
    or a letter was left out; and none carries a line break into the headers."""
    for path in ("//evil.example/", "/\\evil.example/", "/%C3%A9/evil.example/", "/%09/evil.example/", "/%0D%0AX:y"):
        where = ask(address, f"{path}?token={TOKEN}")[2]["location"]
        assert not where.startswith(("//", "/\\")) and where.isascii() and where.isprintable(), where


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "0", "node7.example"])
def test_other_machines_only_where_asked(tmp_path, capsys, host):
    """`--host` alone is wrong usage that names what is needed; so is the function without a token."""
    assert not is_loopback(host)
    assert main(["serve", str(tmp_path), "--host", host]) == 2
    assert "--allow-remote" in capsys.readouterr().err
    with pytest.raises(UsageError, match="other machines"):
        serve(tmp_path, host)


def test_the_command_warns_and_hands_out_a_token(tmp_path, capsys, monkeypatch):
    """A new one each time, or the one of the environment, which must be long enough."""
    started = []
    monkeypatch.setattr("advisor.serve.app.serve", lambda *given: started.append(given))
    assert main(["serve", str(tmp_path), "--host", "0.0.0.0", "--allow-remote"]) == 0
    told = capsys.readouterr().err
    token = started[0][-1]
    assert "unencrypted" in told and token in told and len(token) >= 24
    monkeypatch.setenv("ADVISOR_TOKEN", TOKEN)
    assert main(["serve", str(tmp_path), "--host", "0.0.0.0", "--allow-remote"]) == 0 and started[1][-1] == TOKEN
    for wrong in ("short", "semi;colon-in-a-token", "line\nbreak-in-a-token"):
        monkeypatch.setenv("ADVISOR_TOKEN", wrong)
        assert main(["serve", str(tmp_path), "--host", "0.0.0.0", "--allow-remote"]) == 2
    assert len({make_token() for _ in range(50)}) == 50


def test_this_machine_needs_none(tmp_path, monkeypatch):
    """On loopback everything is as it was."""
    started = []
    monkeypatch.setattr("advisor.serve.app.serve", lambda *given: started.append(given))
    for host in ("127.0.0.1", "localhost", "::1"):
        assert main(["serve", str(tmp_path), "--host", host, "-q"]) == 0
    assert all(len(given) == 4 for given in started)
