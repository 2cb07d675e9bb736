"""Callbacks over HTTP: who gets them, how they are signed, where they must not go, and one delivery."""
