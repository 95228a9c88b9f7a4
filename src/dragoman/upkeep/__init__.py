"""What is done to a store beside running it: conversion of old ones, back-up and restore, check and repair."""
