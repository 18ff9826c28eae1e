// The files of a directory.
import { readFile, readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'

/** All files under a directory, as {path, content}; the path is relative to it. */
export async function readFiles(directory) {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return Promise.all(paths.map(async (path) => ({ path: relative(directory, path), content: await readFile(path) })))
}
