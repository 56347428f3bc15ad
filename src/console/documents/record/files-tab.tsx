import { below } from '../../api-paths.js';
import { Preview } from '../../files/preview.js';
import { previewAddress, publicAddress } from '../../files/stored-file.js';
import { bytes, moment } from '../../format.js';
import { useLoad } from '../../load.js';
import { Trouble } from '../../parts/basics.js';
import type { RecordView } from './record-view.js';

/** The files of a document, by links that end after ten minutes. */
export function FilesTab({ base, record }: RecordView) {
  const { data, error, reload } = useLoad(below(base, '/{document}/files', { document: record.stored?._id ?? '' }));
  return (
    <>
      <Trouble error={error} onRetry={reload} />
      {!data && !error && <p class="empty">Loading…</p>}
      {data?.items.length === 0 && (
        <p class="empty">No file is attached to the document: applications attach them as they upload.</p>
      )}
      {data?.items.map((file) => (
        <section key={file.path}>
          <h3 dir="auto">{file.name}</h3>
          <Preview file={file} url={previewAddress(file.link)} />
          <p class="muted">
            {file.contentType}, {bytes(file.size)}, {moment(file.createdAt)}{' '}
            {publicAddress({ ...file, url: file.link }) !== null && (
              <a href={file.link!} target="_blank" rel="noopener noreferrer">
                Open
              </a>
            )}
          </p>
        </section>
      ))}
    </>
  );
}
