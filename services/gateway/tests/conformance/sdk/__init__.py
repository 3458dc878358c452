"""Real SDKs as judges: what they make of the gateway's bytes is what a user sees."""
