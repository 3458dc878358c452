"""The prewarm agent: model weights arrive once, complete, verified and visible."""
