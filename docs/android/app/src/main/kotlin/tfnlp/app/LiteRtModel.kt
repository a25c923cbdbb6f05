package tfnlp.app

import com.google.ai.edge.litert.Accelerator
import com.google.ai.edge.litert.CompiledModel
import java.io.File
import tfnlp.ModelFile
import tfnlp.Row

/**
 * Runs rows in LiteRT 2, by the signature `run` of a fixed length: `CompiledModel` of Kotlin resizes no inputs.
 *
 * On a GPU take `Accelerator.GPU` and the package `litert-gpu`.
 */
class LiteRtModel(path: File, file: ModelFile) : AutoCloseable {
    private val model = CompiledModel.create(path.path, CompiledModel.Options(Accelerator.CPU))
    private val length = fixedLength(file)
    private val inputs = listOf("ids", "mask", "segment_ids").associateWith { model.createInputBuffer(it, SIGNATURE) }
    private val outputs = file.outputs.associateWith { model.createOutputBuffer(it, SIGNATURE) }

    private fun fixedLength(file: ModelFile): Int {
        val length = model.getInputTensorType("ids", SIGNATURE).layout?.dimensions?.last() ?: -1
        require(length >= file.longest) {
            "The file has no fixed length; export it with --fixed_lengths=${minOf(128, file.longest)} --fixed_only."
        }
        return length
    }

    fun run(row: Row): Map<String, FloatArray> {
        val values = listOf(row.ids, IntArray(row.ids.size) { 1 }, row.segmentIds)
        for ((buffer, numbers) in inputs.values.zip(values)) buffer.writeInt(numbers.copyOf(length))
        model.run(inputs, outputs, SIGNATURE)
        return outputs.mapValues { (_, buffer) -> buffer.readFloat() }
    }

    override fun close() {
        (inputs.values + outputs.values).forEach { it.close() }
        model.close()
    }

    private companion object {
        const val SIGNATURE = "run"
    }
}
