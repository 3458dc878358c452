"""Tests of the control side, one file a module; time is moved by the test, sockets are real."""
