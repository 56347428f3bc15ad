import { type Dirent, readdirSync, realpathSync, statSync } from 'node:fs';
import { extname, join, sep } from 'node:path';
import { conflict } from '../../errors.js';

/** A file of the folder, as it is asked for. */
export interface PublicFile {
  path: string;
  /** For `Content-Type`: the extension with its dot. */
  extension: string;
  isPage: boolean;
  /** Its name changes with its content: a copy is good for ever. */
  isHashed: boolean;
  /** The same file, compressed when it was built. */
  compressed: Partial<Record<'br' | 'gzip', string>>;
}

/** What the folder holds, by the address under the service. */
export interface PublicListing {
  files: ReadonlyMap<string, PublicFile>;
  /** Folders with a page of their own, without the slash at the end. */
  folders: ReadonlySet<string>;
  /** What is left out: links out of the folder, and links to folders. */
  links: readonly string[];
}

const MAX_FILES = 100_000;
const COMPRESSED = { '.br': 'br', '.gz': 'gzip' } as const;

/**
 * Lists a folder as addresses: nothing else can be asked for, whatever a path looks like. Left out are names that begin
 * with a dot, except `.well-known`, and links that lead out. 409 NO_PUBLIC_DIR for what is no folder.
 */
export function listPublicFolder(dir: string): PublicListing {
  const root = openRoot(dir);
  const paths = new Map<string, string>();
  const links: string[] = [];
  walk(root, root, '', paths, links);
  const files = new Map<string, PublicFile>();
  const folders = new Set<string>();
  for (const [address, path] of paths) {
    const packed = extname(address) as keyof typeof COMPRESSED;
    if (packed in COMPRESSED && paths.has(address.slice(0, -packed.length))) continue;
    const extension = extname(address).toLowerCase();
    const isPage = extension === '.html';
    const compressed: PublicFile['compressed'] = {};
    for (const [suffix, encoding] of Object.entries(COMPRESSED)) {
      const found = paths.get(address + suffix);
      if (found !== undefined) compressed[encoding] = found;
    }
    const file = { path, extension, isPage, isHashed: !isPage && isHashed(address), compressed };
    files.set(address, file);
    if (!isPage) continue;
    // `about.html` is also `/about`, `docs/index.html` also `/docs/`.
    const page = address.slice(0, -'.html'.length);
    if (page.endsWith('/index')) {
      const folder = page.slice(0, -'/index'.length);
      files.set(`${folder}/`, file);
      if (folder !== '') folders.add(folder);
    } else if (!paths.has(page)) {
      files.set(page, file);
    }
  }
  return { files, folders, links };
}

function openRoot(dir: string): string {
  try {
    if (statSync(dir).isDirectory()) return realpathSync(dir);
  } catch {
    // Said below.
  }
  throw conflict('NO_PUBLIC_DIR', `${dir} is not a folder: build the front end first, or correct --public`);
}

function walk(root: string, folder: string, address: string, paths: Map<string, string>, links: string[]): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.name.startsWith('.') && entry.name !== '.well-known') continue;
    const path = join(folder, entry.name);
    const at = `${address}/${entry.name.normalize('NFC')}`;
    if (entry.isDirectory()) {
      walk(root, path, at, paths, links);
    } else if (entry.isFile() || isLinkWithin(root, path, entry)) {
      if (paths.size === MAX_FILES) throw conflict('NO_PUBLIC_DIR', `${root} has more than ${MAX_FILES} files`);
      // Not the link, which may be changed to lead elsewhere.
      paths.set(at, entry.isFile() ? path : realpathSync(path));
    } else if (entry.isSymbolicLink()) {
      links.push(path);
    }
  }
}

function isLinkWithin(root: string, path: string, entry: Dirent): boolean {
  if (!entry.isSymbolicLink()) return false;
  try {
    const target = realpathSync(path);
    const below = target.startsWith(root + sep) ? target.slice(root.length) : null;
    return below !== null && !below.includes(`${sep}.`) && statSync(target).isFile();
  } catch {
    // It leads to nothing, or in a circle.
    return false;
  }
}

/**
 * Whether a build has put a hash into the name: `main-Dk3xF9aQ.js`, `main.3f2a1b4c.css`. What could be a word or a date
 * is none.
 */
function isHashed(address: string): boolean {
  const hash = /[.-]([\w-]{8}|[0-9a-f]{16,64})\.\w+(?:\.map)?$/.exec(address)?.[1];
  return hash !== undefined && !/^([A-Z]?[a-z_-]+|[\d_-]+)$/.test(hash);
}
