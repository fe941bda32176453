"""Settings of access tokens and of the sign-in with OpenID Connect, for browsers and for the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator

from ai_platform_engineering.settings.fields import (
    AllowedValues,
    OptionalKey,
    OptionalSecret,
    OptionalSecureAddress,
    SettingsGroup,
    not_a_directory,
    setting,
)

ANY_AUDIENCE: Final = "*"
"""Of `A2A_OAUTH_AUDIENCE`: tokens are accepted whatever service they were issued for."""


class SignInSettings(SettingsGroup):
    a2a_oauth_issuer: OptionalSecureAddress = setting(
        "Sign-in",
        "OpenID Connect provider, or another OAuth2 issuer, whose access tokens the server accepts as bearer tokens, "
        "as an alternative to the shared key. When set, callers must send one of the two.",
    )
    a2a_oauth_audience: str | None = setting(
        "Sign-in",
        "Audience that access tokens must contain. Clients of the supervisor also request it. A server that other "
        f"machines can reach needs it; `{ANY_AUDIENCE}` accepts tokens that were issued for any service.",
        shown_default="any",
    )
    a2a_oauth_jwks_url: OptionalSecureAddress = setting(
        "Sign-in", "URL of the issuer's public keys (JWKS).", shown_default="from the issuer's metadata"
    )
    a2a_oauth_groups_claim: str = setting(
        "Sign-in",
        "Claim with the groups of a person, a list or a text with spaces. Dots lead into objects, for example "
        "`realm_access.roles`.",
        "groups",
    )
    a2a_oauth_admin_groups: str = setting(
        "Sign-in",
        "Groups whose members have the role `admin`: they see and operate everything. Comma-separated.",
        "",
    )
    oidc_client_id: str | None = setting(
        "Sign-in",
        "Id of the web page at the provider `A2A_OAUTH_ISSUER`. When set, people sign in at the page with OpenID "
        "Connect. The redirect URI to register is the URL of the page followed by `session/callback`.",
    )
    oidc_client_secret: OptionalSecret = setting(
        "Sign-in",
        "Secret of `OIDC_CLIENT_ID`. Without it the page is a public client. PKCE is used in both cases.",
    )
    oidc_scopes: str = setting("Sign-in", "Scopes that the page requests, separated by spaces.", "openid profile")
    oidc_device_client_id: str | None = setting(
        "Sign-in",
        "Id of the terminal at the provider: a public client with the device authorization grant, which "
        "`platform-engineer login` uses.",
        shown_default="`OIDC_CLIENT_ID`, unless that has a secret",
    )
    oidc_device_scopes: str | None = setting(
        "Sign-in",
        "Scopes that `platform-engineer login` requests. Many providers give a refresh token only with "
        "`offline_access`.",
        shown_default="`OIDC_SCOPES`",
    )
    session_secret: OptionalKey = setting(
        "Sign-in",
        "Secret that signs the session cookies of browsers. Supervisors that share their work need the same one. "
        "A new value ends all sessions.",
        shown_default="`A2A_AUTH_SHARED_KEY`, else the file `session.key` in `DATA_DIR`",
    )
    session_hours: float = setting(
        "Sign-in",
        "Hours after which a person must sign in again at the page. Groups are read from the provider at each sign-in.",
        12,
        gt=0,
        le=720,
    )
    logins_file: Annotated[Path, AfterValidator(not_a_directory), AllowedValues("the path of a file")] = setting(
        "Sign-in",
        "File in which `platform-engineer login` stores the tokens of this user. Only the user can read it.",
        Path("~/.config/platform-engineer/logins.json"),
        shown_default="`~/.config/platform-engineer/logins.json`, or `$XDG_CONFIG_HOME/platform-engineer/logins.json`",
    )
