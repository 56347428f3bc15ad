/** What the engine starts as a thread or a process of its own; where it is built, each lies beside the engine. */
export const ENTRIES = {
  'reader-thread': 'readers/reader-thread.ts',
  'look-process': 'storage/checks/look-process.ts',
  'copy-process': 'storage/copy-process.ts',
};
