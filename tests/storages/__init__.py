"""The contract of a storage, on a real server (or an emulator) of each kind.

racers  what several processes do at once
"""
