import type { ComponentType } from 'preact';
import { useState } from 'preact/hooks';
import { JsonEditor } from '../../parts/json-editor.js';
import { AccessTab } from './access-tab.js';
import { FilesTab } from './files-tab.js';
import { HistoryTab } from './history-tab.js';
import { RecordForm } from './record-form.js';
import { ReferencesTab } from './references-tab.js';
import type { RecordView } from './record-view.js';
import { textOf } from './use-record.js';

interface RecordTab {
  /** In the address. */
  name: string;
  label: string;
  /** Says nothing of a document that is not stored yet. */
  ofStored?: true;
  View: ComponentType<RecordView>;
}

/** The views of a record, in the order of their tabs; the first one is shown unless the address names another. */
export const RECORD_TABS: readonly RecordTab[] = [
  { name: 'form', label: 'Form', View: RecordForm },
  { name: 'json', label: 'JSON', View: JsonTab },
  { name: 'history', label: 'History', ofStored: true, View: HistoryTab },
  { name: 'references', label: 'References', ofStored: true, View: ReferencesTab },
  { name: 'files', label: 'Files', ofStored: true, View: FilesTab },
  { name: 'access', label: 'Access', ofStored: true, View: AccessTab },
];

function JsonTab({ record, isFixed }: RecordView) {
  const [first] = useState(() => textOf(record));
  return <JsonEditor text={first} label="Document as JSON" isReadOnly={isFixed} onChange={record.setText} />;
}
