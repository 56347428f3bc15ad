export * from '../../src/engine/test/helpers/random.js';
