import type { Document } from 'bson';
import type { Collection } from '../../collections/collection.js';
import type { DocumentShape } from './pipeline-literals.js';

/** A collection that a pipeline reads: where its documents are stored, and which of them the caller may see. */
export interface PipelineSource {
  collection: Collection;
  storedName: string;
  /** Holds for the documents that the caller may read; always joined in, never left to the client. */
  visible: Document;
  /** Whether rules keep documents from the caller. */
  isRestricted: boolean;
  /** Fields that the caller does not see in every document: the pipeline neither names nor hands on any of them. */
  unseen: ReadonlySet<string>;
}

/** The surroundings in which a stage is checked. */
export interface PipelineScope {
  shape: DocumentShape;
  /** A joined collection by the name that clients use; throws 400 or 404. Counts against the limits of joins. */
  join(name: unknown, stage: string): PipelineSource;
  /** A pipeline over a joined collection, restricted to what is visible in it. */
  joined(stages: unknown, source: PipelineSource, stage: string): Document[];
  /** A pipeline over the documents in hand. */
  nested(stages: unknown, stage: string): Document[];
}

/** Returns the stages that may run instead of one stage of the client. */
export type StageGuard = (specification: unknown, scope: PipelineScope) => Document[];
