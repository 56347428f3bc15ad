import { afterEach, beforeEach } from 'vitest';
import { type Engine, openEngine } from '../index.js';
import { openTempDir, type TempDir } from './helpers/temp-dir.js';

/** Gives each test of the file an engine in a directory of its own; both are gone when it ends. */
export function openEnginePerTest(): { readonly engine: Engine; readonly path: string } {
  let dir: TempDir;
  let engine: Engine;
  beforeEach(async () => {
    dir = await openTempDir();
    engine = openEngine({ dataDir: dir.path, durability: 'relaxed' });
  });
  afterEach(async () => {
    await engine.close();
    await dir.remove();
  });
  return {
    get engine() {
      return engine;
    },
    get path() {
      return dir.path;
    },
  };
}
