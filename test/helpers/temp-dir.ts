export * from '../../src/engine/test/helpers/temp-dir.js';
