"""Access to the disk. No other package opens, writes or renames files.

log_folder.py      LogFolder: the folder of one partition's log
files.py           Files and File: the operations of the file system that a log needs
directory_lock.py  the lock of a log directory
file_names.py      every name and suffix in a log directory
checkpoints.py     small text files that are replaced as a whole
bytes_file.py      BytesFile: bytes in memory that are read like a file
overlay_files.py   OverlayFiles: reads the disk, writes to memory
unsynced_files.py  UnsyncedFiles: files without fsync, for temporary data
"""
