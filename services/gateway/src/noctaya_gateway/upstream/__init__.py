"""The backend side of the data path: HTTP/1.1 connections and the pool that keeps them."""
