"""The principal of a certificate."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tailrace.model.topic_config import InvalidConfig
from tailrace.server.tls.certificate_names import NoSuchName, PrincipalRules, _object_identifier, subject_of

TLS = Path(__file__).parents[3] / "support" / "tls"


def der(name: str) -> bytes:
    text = (TLS / name).read_text()
    return ssl.PEM_cert_to_DER_cert(text[text.index("-----BEGIN CERTIFICATE") :])


def test_a_subject_is_written_as_java_writes_it() -> None:
    assert subject_of(der("client.pem")) == "CN=client"
    # What X500Principal.getName() says of it.
    assert subject_of(der("odd-subject.pem")) == (
        r"DC=org,UID=42,1.2.840.113549.1.9.1=#160d6f406578616d706c652e6f7267,"
        r"CN=\ Olaf \"X\" \#1\ ,OU=a\=b\;c,O=Müller\, Söhne \+ Co,ST=Bayern,C=DE"
    )


@pytest.mark.parametrize("cut", [0, 1, 5, 40, 120, 200])
def test_an_incomplete_certificate_is_refused(cut: int) -> None:
    with pytest.raises(NoSuchName):
        subject_of(der("client.pem")[:cut])


@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        ("DEFAULT", "CN=a,O=b", "CN=a,O=b"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=Kafka,OU=ServiceUsers,O=x", "Kafka"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/L,DEFAULT", "CN=Adm,OU=IT,O=x", "adm@it"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/L,DEFAULT", "CN=Adm", "CN=Adm"),
        ("RULE:^CN=([^,]+).*$/$1/U", "CN=adm,O=x", "ADM"),
        (r"RULE:^CN=(.*?)\/(.*)$/$2/, DEFAULT", "CN=a/b", "b"),
    ],
)
def test_the_first_matching_rule_determines_the_principal(rules: str, subject: str, name: str) -> None:
    assert PrincipalRules(rules).apply(subject) == name


USUAL = r"RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,DEFAULT"


def test_a_long_subject_takes_no_longer_than_it_has_characters() -> None:
    subject = "CN=x" + ",OU=,O=,L=,ST=" * 1_000
    assert PrincipalRules(USUAL).apply(subject) == subject


def test_a_pattern_with_lookaround_is_matched_with_short_subjects_only() -> None:
    rules = PrincipalRules("RULE:^CN=(?!admin)(.*?),O=x$/$1/")
    assert rules.apply("CN=eve,O=x") == "eve"
    with pytest.raises(NoSuchName, match="the limit is 512"):
        rules.apply("CN=eve" + "e" * 512 + ",O=x")


def test_an_object_identifier_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="too long"):
        _object_identifier(b"\x55" + b"\xff" * 100_000)


def test_a_subject_that_no_rule_matches_is_refused() -> None:
    with pytest.raises(NoSuchName):
        PrincipalRules("RULE:^CN=x$/y/").apply("CN=z")


@pytest.mark.parametrize("rules", ["RULE:", "RULE:^CN=(.*$/$1/", "RULE:a/b", "NEVER", "DEFAULT,,"])
def test_an_invalid_rule_is_refused(rules: str) -> None:
    with pytest.raises(InvalidConfig):
        PrincipalRules(rules)


@pytest.mark.parametrize("rule", ["RULE:^CN=(.*?),.*$/$2/", "RULE:^.*$/$1/L", "RULE:^CN=(.*)$/$1@$9/"])
def test_a_rule_that_names_a_missing_group_is_refused(rule: str) -> None:
    with pytest.raises(InvalidConfig, match=r"names group \$\d, but the pattern"):
        PrincipalRules(rule)


def test_a_rule_may_name_the_whole_match_and_every_group_of_its_pattern() -> None:
    assert PrincipalRules("RULE:^CN=(.*)$/$0+$1/").apply("CN=a") == "CN=a+a"
