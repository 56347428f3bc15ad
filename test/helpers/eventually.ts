export * from '../../src/engine/test/helpers/eventually.js';
