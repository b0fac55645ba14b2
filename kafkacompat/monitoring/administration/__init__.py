"""The instances of a cluster over HTTP: /v1/instances as JSON, with its OpenAPI document and a page of it.

Each request needs a token or a password. Without kafkacompat.http.token.file and kafkacompat.http.scram.enable none of it is served,
and nothing here is imported.
"""
