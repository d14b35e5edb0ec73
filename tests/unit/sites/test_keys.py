import stat

import pytest

from d3gd.errors import RecordError, SettingsError
from d3gd.sites import keys


def test_a_secret_key_comes_back_and_only_its_owner_can_read_it(tmp_path):
    pair, path = keys.generate(), tmp_path / "site.secret"
    keys.write_secret(path, pair)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert keys.read_secret(path) == pair
    assert pair.secret not in repr(pair)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o777])
def test_a_key_that_others_can_read_is_refused(mode, tmp_path):
    path = tmp_path / "site.secret"
    keys.write_secret(path, keys.generate())
    path.chmod(mode)
    with pytest.raises(SettingsError, match="chmod 600"):
        keys.read_secret(path)


def test_a_key_is_never_overwritten(tmp_path):
    path = tmp_path / "site.secret"
    keys.write_secret(path, keys.generate())
    before = path.read_bytes()
    with pytest.raises(RecordError, match="never overwritten"):
        keys.write_secret(path, keys.generate())
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["", "x", "d3gd site secret key\nshort\n", "d3gd site secret key\n" + "~" * 40])
def test_what_is_no_key_is_refused(text, tmp_path):
    path = tmp_path / "site.secret"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(SettingsError, match="no secret key"):
        keys.read_secret(path)


@pytest.mark.parametrize("key", ["", "a" * 39, "a" * 41, "~" * 40, "ä" * 40])
def test_a_public_key_has_forty_characters_of_z85(key):
    with pytest.raises(SettingsError, match="no public key"):
        keys.require_key(key, "key")
    assert len(keys.require_key(keys.generate().public, "key")) == 40
