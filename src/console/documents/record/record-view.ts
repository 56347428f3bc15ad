import type { Collection, DocumentsPath } from '../../collection.js';
import type { EditedRecord } from './use-record.js';

export interface RecordPlace {
  base: DocumentsPath;
  collection: Collection;
  /** Of the project. */
  collections: readonly Collection[];
}

/** What a tab of a record is given. */
export interface RecordView extends RecordPlace {
  record: EditedRecord;
  isFixed: boolean;
}
