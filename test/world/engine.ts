// The embedded engine, which also stands in for a MongoDB.

export { openEngine, type Engine, DATA_FILE, verifyDataFile } from '../../src/engine/index.js';
