import { bytes, moment } from '../format.js';
import { Copy } from '../parts/basics.js';
import { Drawer } from '../parts/drawer.js';
import { linkTo, place } from '../routes.js';
import { mayChange } from '../session.js';
import { Preview } from './preview.js';
import { previewAddress, publicAddress, type StoredFile } from './stored-file.js';

const NO_ADDRESS: Readonly<Record<StoredFile['visibility'], string>> = {
  public: 'none: the bucket has no public address',
  attached: 'none: it is read by links, by those who may read its document',
  private: 'none: it is read by links, with the secret key',
};

/** A file with what can be shown of it. */
export function FileDrawer({
  file,
  onDelete,
  onClose,
}: {
  file: StoredFile;
  onDelete: () => void;
  onClose: () => void;
}) {
  const address = publicAddress(file);
  const { uploadedBy } = file;
  return (
    <Drawer title={file.name} onClose={onClose}>
      <Preview file={file} url={previewAddress(file.url)} />
      <dl class="pairs">
        <dt>Type</dt>
        <dd>{file.contentType}</dd>
        <dt>Size</dt>
        <dd>{bytes(file.size)}</dd>
        <dt>Stored</dt>
        <dd>{file.provider === 'internal' ? 'at the service' : 'in the project’s bucket'}</dd>
        <dt>Uploaded by</dt>
        <dd>
          {uploadedBy === null ? (
            'the project'
          ) : (
            <a href={linkTo(['p', place.value.parts[1] ?? '', 'users'], { open: uploadedBy })}>{uploadedBy}</a>
          )}
        </dd>
        <dt>Created</dt>
        <dd>{moment(file.createdAt)}</dd>
        <dt>Path</dt>
        <dd>
          <code>{file.path}</code> <Copy text={file.path} what="Path" />
        </dd>
        <dt>Address</dt>
        <dd>
          {address === null ? (
            NO_ADDRESS[file.visibility]
          ) : (
            <>
              <a href={address} target="_blank" rel="noopener noreferrer">
                {address}
              </a>{' '}
              <Copy text={address} what="Address" />
            </>
          )}
        </dd>
      </dl>
      {address !== null && <p class="muted">Whoever has the address can read the file.</p>}
      {mayChange.value && (
        <p class="foot">
          <button class="danger" onClick={onDelete}>
            Delete…
          </button>
        </p>
      )}
    </Drawer>
  );
}
