"""The wire: what is done to a message between its node's outbox and the ledger.

message leaves its node -> adversary -> encoding -> ledger (bits) -> network -> receiver
"""
