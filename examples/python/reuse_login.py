"""Logs in once, and reuses the login in later runs: SHOP_PASSWORD=... python reuse_login.py https://shop.example"""

import os
import sys

from pilothouse import Pilothouse

shop = sys.argv[1]
client = Pilothouse()


def find_profile() -> str:
    """Returns the id of the shop's profile, which the first run creates."""
    for profile in client.list("/v1/profiles"):
        if profile["name"] == "shop":
            return str(profile["id"])
    return str(client.request("POST", "/v1/profiles", {"name": "shop"})["id"])


# The end of the session saves its cookies and storage in the profile.
with client.sessions.create(profile_id=find_profile()) as session:
    if session.goto(f"{shop}/account")["title"] == "Log in":
        session.fill("[name=user]", "ada")
        session.fill("[name=password]", os.environ["SHOP_PASSWORD"])
        session.tap("button")
        session.wait("#account")
        print("logged in")
    else:
        print("reused the login")
    print(session.state()["title"])
