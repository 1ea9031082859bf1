// A report's table as Parquet, for pandas, DuckDB and Polars: the columns of the CSV, texts and doubles.

import type { Report } from "./model.ts";
import { reportTable } from "./tables.ts";

/**
 * The numbers as a Parquet file. A column with a text in it is of texts, every other one of doubles; what is not there is
 * null. Texts stand as they are: what a spreadsheet would take for a formula is none here.
 *
 * @throws RangeError for runs of several kinds, which have different columns
 */
export async function reportParquet(report: Report): Promise<Uint8Array<ArrayBuffer>> {
  const { columns, rows } = reportTable(report);
  const { parquetWriteBuffer } = await import("hyparquet-writer");
  const columnData = columns.map((name, i) => {
    const cells = rows.map((row) => row[i]!);
    const isText = cells.some((cell) => typeof cell === "string");
    return isText
      ? { name, data: cells.map((cell) => (cell === null ? null : String(cell))), type: "STRING" as const }
      : { name, data: cells, type: "DOUBLE" as const };
  });
  return new Uint8Array(parquetWriteBuffer({ columnData, createdBy: "longhand" }));
}
