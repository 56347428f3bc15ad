export * from '../../src/engine/test/helpers/seed.js';
